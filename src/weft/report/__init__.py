"""Records in; tables, charts and pages out. A summary is a plain dictionary: of weft nothing is imported but
`weft.terminal`, which shows text from outside as text, `weft.disk` and `weft.errors`.

`page.render` makes one HTML file that needs no network; its charts are SVG written here, so that they follow the
page's light or dark colours, print well and are read out by screen readers. `table` draws on terminals and as CSV.
"""
