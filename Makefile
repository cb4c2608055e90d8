# SPDX-License-Identifier: GPL-2.0
# The commands of this tree; `make help` lists them. Kbuild has the build itself.

ifneq ($(KERNELRELEASE),)
include $(src)/Kbuild
else

TOP := $(CURDIR)
KERNEL ?= base

# Without KDIR the modules are built against a kernel of the SDK, inside its toolchain root.
ifdef KDIR
flavour := kdir
kdir := $(abspath $(KDIR))
kmake := $(MAKE)
recurse := $(if $(V),,@)+
LLVM ?= $(shell grep -qs '^CONFIG_CC_IS_CLANG=y' $(kdir)/include/config/auto.conf && echo 1)
else
flavour := $(KERNEL)
kdir = $(shell scripts/sdk --path $(KERNEL))
kmake = scripts/in-root $(if $(INSTALL_MOD_PATH),--bind $(abspath $(INSTALL_MOD_PATH))) make -j$(shell nproc)
recurse := $(if $(V),,@)
LLVM ?= 1
sdk := sdk-$(KERNEL)
endif

# Code that is checked has objects of its own, so that the checks and the modules do not rebuild each other.
objects := build/kbuild/$(flavour)$(if $(CLIPPY)$(W),-lint)
modconfig := $(foreach name,WEFT WEFT_RDS WEFT_RDS_TCP WEFT_RDMA WEFT_RTRS_CLIENT WEFT_RTRS_SERVER WEFT_RNBD_CLIENT \
	WEFT_RNBD_SERVER,CONFIG_$(name)=m)
# Two runs at once take turns.
kbuild = $(recurse)flock $(objects).lock $(kmake) --no-print-directory -C $(kdir) M=$(TOP) MO=$(TOP)/$(objects) $(modconfig) \
	$(foreach name,LLVM V CLIPPY W,$(if $($(name)),$(name)=$($(name))))

default: modules

modules: $(sdk)
	@mkdir -p $(objects) build/modules/$(flavour)
	$(kbuild) modules
	@$(if $(CLIPPY)$(W),:,cp -pu $(objects)/*.ko build/modules/$(flavour)/)

modules_install: modules
ifndef KDIR
	@[ -n '$(INSTALL_MOD_PATH)' ] || { echo 'These modules fit a kernel of the SDK, not one that is installed here:' \
		'give KDIR=/path/to/kernel/build, or INSTALL_MOD_PATH=/directory' >&2; exit 1; }
	@mkdir -p $(INSTALL_MOD_PATH)
endif
	$(kbuild) $(if $(INSTALL_MOD_PATH),INSTALL_MOD_PATH=$(abspath $(INSTALL_MOD_PATH))) modules_install

tools: sdk-base
	scripts/in-root bash -c 'cd tools && cargo build --release --locked --target-dir ../build/tools'
	@scripts/in-root tools/completions build/tools/release build/tools/completions

check:
	@scripts/check check $(if $(ONLY),--only '$(ONLY)')

soak:
	@scripts/check soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only '$(ONLY)')

demo:
	@scripts/demo

bench:
	@scripts/bench

lint: sdk-base
	@scripts/lint

fmt: sdk-base
	@scripts/fmt

rustdoc: modules
	@scripts/rustdoc $(objects)

rust-project.json: modules
	@scripts/rust-project $(objects) $(kdir)

sdk: sdk-base sdk-debug

sdk-base sdk-debug: sdk-%:
	@scripts/sdk $*

clean:
	rm -rf build rust-project.json

help:
	@echo 'Building (everything a command needs and that is not there yet, it prepares first):'
	@echo '  make                  the kernel modules, into build/modules/'
	@echo '  make modules_install  installs them into /lib/modules/*/updates'
	@echo '  make tools            rds-ping, rds-info, rds-stress, rds-traffic and rds-bench, into build/tools/release/'
	@echo '  make rustdoc          documentation of the crates, into build/rustdoc/'
	@echo '  make rust-project.json  the project file of rust-analyzer'
	@echo '  make sdk              only the toolchain root and the kernels'
	@echo '  make clean'
	@echo 'Trying and testing:'
	@echo '  make demo             datagrams over a bad network, a disk over paths that are cut, in virtual machines'
	@echo '  make check            all checks and tests; ends with: N passed, N failed, N skipped'
	@echo '  make soak             the long versions of the tests'
	@echo '  make bench            C and Rust side by side'
	@echo '  make lint, make fmt   checks the sources; formats them'
	@echo 'Variables:'
	@echo '  KDIR=DIR              kernel build directory (7.3 or newer, CONFIG_RUST=y) instead of the SDK'
	@echo '  KERNEL=base|debug     kernel of the SDK to build against'
	@echo '  INSTALL_MOD_PATH=DIR  prefix for modules_install'
	@echo '  V=1 CLIPPY=1 W=1      as in the kernel: show commands, lint Rust, more warnings'
	@echo '  ONLY=PATTERN          for check and soak: run only what matches, such as ONLY=base/poll'
	@echo '  MINUTES=N             for soak: how long'
	@echo '  WEFT_CACHE=DIR        where the SDK lives; by default ~/.cache/weft'

.PHONY: default modules modules_install tools check soak demo bench lint fmt rustdoc rust-project.json sdk sdk-base \
	sdk-debug clean help
endif
