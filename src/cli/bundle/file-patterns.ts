/** Patterns of files as package.json and ignore files have them: a folder, names with stars in them, and a ! that takes out again. */

interface Pattern {
  /** Matches it and all below it. */
  readonly inside: RegExp
  /** Whether a path is a folder on the way to it. */
  readonly above: (path: string) => boolean
  readonly anywhere: boolean
}

/** `*` and `?` stay within a name, `**` does not. */
export function patternOf(word: string): Pattern {
  const plain = word.replace(/^\.?\//, '').replace(/\/$/, '')
  const source = plain
    .split('/')
    .map(part =>
      part === '**'
        ? '.*'
        : part
            .replace(/[.+^${}()|[\]\\]/g, '\\$&')
            .replace(/\*/g, '[^/]*')
            .replace(/\?/g, '[^/]'),
    )
    .join('/')
  const steps = plain.split('/')
  const above = (path: string): boolean => {
    const parts = path.split('/')
    return parts.length < steps.length && parts.every((part, at) => steps[at] === part || /[*?]/.test(steps[at] ?? ''))
  }
  return { inside: new RegExp(`^${source.replaceAll('.*/', '(?:.*/)?')}(?:/.*)?$`), above, anywhere: !plain.includes('/') }
}

/** Whether a path is one of a list of files, or a folder on the way to one. A folder stands for all in it; `!` takes out again. */
export function wantedBy(files: readonly string[]): (path: string) => boolean {
  const patterns = files.filter(word => !word.startsWith('!')).map(patternOf)
  const without = files.filter(word => word.startsWith('!')).map(word => patternOf(word.slice(1)))
  return path => {
    if (without.some(({ inside }) => inside.test(path))) return false
    return patterns.some(({ inside, above }) => inside.test(path) || above(path))
  }
}

/** Keys, databases and recordings, by their endings. */
const endings =
  /\.(pem|key|p12|pfx|p8|jks|keystore|kdbx|ppk|asc|gpg|tape|har|db|db3|sqlite|sqlite3|sqlitedb|mdb)([-.][\w.-]+)?$|\.(db|sqlite)-(wal|shm|journal)$/i

/** Files that programs of the user keep credentials in. */
const named =
  /^(\.env(\..*)?|.*\.env|\.envrc|\.npmrc|\.yarnrc(\.yml)?|\.netrc|_netrc|\.pypirc|\.pgpass|\.my\.cnf|\.htpasswd|\.git-credentials|\.dockercfg|\.vault-token|id_(rsa|dsa|ecdsa|ed25519)(\..*)?|known_hosts|authorized_keys|.*_history)$/i

/** Tokens and credentials that lie in data; code of that name is code. */
const data =
  /^[\w.-]*(token|credential|secret|password|passwd|service[-_.]?account)s?[\w-]*(\.(json|ya?ml|toml|ini|cfg|conf|txt|csv|enc|bin|dat|jsonl))?$/i
const code = /\.([cm]?[jt]sx?|map|wasm|node|d\.[cm]?ts|md|html|css)$/i

/** Folders in which all is secret. */
const folders = new Set(['.ssh', '.aws', '.gnupg', '.kube', '.docker', '.azure', '.gcloud', '.vivarium', '.git'])

/** `path` as it stands in the package, with slashes. */
export function looksSecret(path: string): boolean {
  const parts = path.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.slice(0, -1).some(folder => folders.has(folder.toLowerCase()))) return true
  if (named.test(name)) return true
  return !code.test(name) && (endings.test(name) || data.test(name))
}
