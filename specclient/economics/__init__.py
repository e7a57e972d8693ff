"""Was it worth it: what speculation can gain, what it costs, and what fits into memory."""
