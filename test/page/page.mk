# The page that `cniscope show --html` writes, in a real browser.

.PHONY: test-html
test-html: tools-html ## the page of show --html in a real browser: by keyboard, by axe-core's rules, on paper
	go test ./test/page -count=1 -timeout 30m -v

.PHONY: docs-picture
docs-picture: tools-html ## the picture of the page in the README, docs/page.png
	CNISCOPE_PICTURE=$(CURDIR)/docs/page.png go test ./test/page -run '^TestPicture$$' -count=1
