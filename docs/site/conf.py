"""How Sphinx builds the pages of docs/ and the reference of plugins; tests/tools/docs_site.py brings both together."""

project = "gpufabric.rdma"
author = "Contributors to gpufabric.rdma"
copyright = author  # noqa: A001 - the name that Sphinx reads
extensions = ["myst_parser", "sphinx_antsibull_ext"]
# Links to headings, as in the pages on GitHub.
myst_heading_anchors = 4
html_theme = "furo"
html_title = "gpufabric.rdma"
html_show_sphinx = False
highlight_language = "none"
# Pages of Ansible itself, which are not here. antsibull-docs checks the references between ours.
suppress_warnings = ["ref.ref"]
# Pages of the project are complete without the network.
html_static_path: list[str] = []
