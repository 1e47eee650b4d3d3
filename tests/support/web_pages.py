"""What a browser would find in a page."""

from html.parser import HTMLParser


class Checker(HTMLParser):
    """Checks that tags close in order, and gathers what a page would load."""

    VOID = {"meta", "img", "br", "use", "path"}

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href") and value]

    def handle_startendtag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href") and value]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag
