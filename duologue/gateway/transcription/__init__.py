"""Audio files into text for routes: windows, a recogniser, segments, subtitles. No transport."""
