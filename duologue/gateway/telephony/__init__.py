"""Phone calls that carriers stream over WebSocket: Twilio, Telnyx, Plivo."""
