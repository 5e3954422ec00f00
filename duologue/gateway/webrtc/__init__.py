"""WebRTC: calls whose audio travels over RTP and whose events travel over a data channel."""
