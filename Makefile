# SPDX-License-Identifier: GPL-2.0
# The commands of this tree; `make help` lists them. Kbuild has the build itself.

ifneq ($(KERNELRELEASE),)
include $(src)/Kbuild
else

TOP := $(CURDIR)
KERNEL ?= base
SDK_KDIR = $(shell scripts/sdk --path $(KERNEL))

# Without KDIR the modules are built against a kernel of the SDK, inside its toolchain root.
ifdef KDIR
enter :=
kdir := $(KDIR)
else
enter := scripts/in-root
kdir = $(SDK_KDIR)
endif

modconfig := CONFIG_WEFT=m CONFIG_WEFT_RDS=m CONFIG_WEFT_RDS_TCP=m
kbuild = $(enter) $(MAKE) --no-print-directory -C $(kdir) M=$(TOP) MO=$(TOP)/build/kbuild/$(KERNEL) \
	LLVM=1 $(modconfig) $(if $(V),V=$(V)) $(if $(CLIPPY),CLIPPY=$(CLIPPY)) $(if $(W),W=$(W))

modules:
	@mkdir -p build/kbuild/$(KERNEL) build/modules/$(KERNEL)
	+$(kbuild) modules
	@cp -pu build/kbuild/$(KERNEL)/*.ko build/modules/$(KERNEL)/
.PHONY: modules
endif
