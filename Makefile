.DEFAULT_GOAL := tools
include tools.mk
