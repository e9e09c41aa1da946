/** Where there are no sockets there is no driver to look for: the store itself says so when it is opened. */
export async function loadPg(): Promise<void> {}
