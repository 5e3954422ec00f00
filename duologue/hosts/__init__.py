"""Session hosts as gateways see them: in this process, or at the other end of a link."""
