"""A translator of one's own behind LibreTranslate's API: text in over HTTP, text out.

The last room but the command line: a request is read (`schema`, `body`), cut into sentences (`sentences`,
`markup`, `glossary`), gathered into batches with those of others (`batcher`), and put together (`document`).
"""
