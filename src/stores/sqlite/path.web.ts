/** Where there are no files there is no place to look at: the store itself says so when it is opened. */
export function checkSqlitePath(): void {}
