// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module.

weft::module_params! {
    /// The port to listen on, for IP and for native InfiniBand.
    port_nr: u16 = 1234, "The port number the server is listening on (default: 1234)";
    /// What the names of devices are put behind.
    dev_search_path: Text<4096> = "/", "Sets the dev_search_path. When a device is mapped this path is prepended to the device path from the map device operation.  If %SESSNAME% is specified in a path, then device will be searched in a session namespace. (default: /)";
}
