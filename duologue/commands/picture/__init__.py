"""Pictures of calls: what a sheet holds, and how it becomes SVG, HTML or PNG."""
