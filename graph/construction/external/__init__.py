"""Building a generation whose graph is larger than memory: stages that read and write files, by external sorting."""
