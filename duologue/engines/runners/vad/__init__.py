"""Voice activity detection: is this speech? Three detectors behind one runner."""
