"""Images and videos over plain HTTP: what is asked, checked and made, whatever the route."""
