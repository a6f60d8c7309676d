"""The communication study: what each codec costs and saves, in bytes, uploads and seconds on slow links."""
