/** Files that hold secrets, by their names. What such a file really holds is not looked at: it has no business in a bundle. */

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
