/** The environment of a command that serves: the little it needs to run, and what it is given; not our secrets. */

const posix = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'TMPDIR']
const windows = [
  'PATH',
  'PATHEXT',
  'COMSPEC',
  'SYSTEMROOT',
  'SYSTEMDRIVE',
  'WINDIR',
  'PROGRAMFILES',
  'APPDATA',
  'LOCALAPPDATA',
  'USERPROFILE',
  'USERNAME',
  'HOMEDRIVE',
  'HOMEPATH',
  'TEMP',
  'TMP',
  'PROCESSOR_ARCHITECTURE',
]

/** Picks from `ambient` by the allowlist of the platform, then adds what is `given`. */
export function commandEnvironment(
  given: Readonly<Record<string, string>> = {},
  ambient: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const allowed = new Set(platform === 'win32' ? windows : posix)
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(ambient)) {
    // Windows does not tell Path from PATH.
    const known = platform === 'win32' ? name.toUpperCase() : name
    const isAllowed = allowed.has(known) || (platform !== 'win32' && name.startsWith('LC_'))
    // Some shells export functions this way, and run them when they start.
    if (isAllowed && value !== undefined && !value.startsWith('()')) environment[name] = value
  }
  return Object.assign(environment, given)
}
