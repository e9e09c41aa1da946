/** Where tokens and registrations are kept between requests, or between runs. */

/** Stores tokens and registrations as text. Keys name issuer, resource and client; values are secrets. */
export interface TokenStorage {
  /** The value under a key; undefined where there is none. */
  get(key: string): Promise<string | undefined>
  /** Writes a value and replaces the earlier one. */
  set(key: string, value: string): Promise<void>
  /** Removes a value. Nothing happens if there is none. */
  delete(key: string): Promise<void>
}

/** Keeps tokens in memory, until the process ends. */
export function memoryStorage(): TokenStorage {
  const entries = new Map<string, string>()
  return {
    get: async key => entries.get(key),
    set: async (key, value) => void entries.set(key, value),
    delete: async key => void entries.delete(key),
  }
}

/** Options of a token storage in a file. */
export interface FileStorageOptions {
  /**
   * The secret that the encryption key is derived from: at least 16 characters, from a keychain or the environment, not from a
   * file next to the tokens.
   */
  readonly secret: string
}

/**
 * Keeps tokens in one file, encrypted (AES-256-GCM) and readable by its owner only. Several processes can share the file.
 * @example
 * const storage = fileStorage('.vivarium/tokens', { secret: process.env.TOKEN_SECRET })
 */
export function fileStorage(path: string, options: FileStorageOptions): TokenStorage {
  if (typeof options?.secret !== 'string' || options.secret.length < 16) {
    throw new TypeError('fileStorage needs a secret of at least 16 characters, stored separately from the file')
  }
  let opened: Promise<TokenStorage> | undefined
  const open = (): Promise<TokenStorage> => {
    opened ??= import('./file-storage.ts').then(({ openFileStorage }) => openFileStorage(path, options.secret))
    return opened
  }
  return {
    get: async key => (await open()).get(key),
    set: async (key, value) => (await open()).set(key, value),
    delete: async key => (await open()).delete(key),
  }
}
