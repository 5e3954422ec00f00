"""Plain HTTP routes: models, health, metrics, the page."""
