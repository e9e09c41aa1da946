/** Where tokens and registrations are kept between requests, or between runs. */

/** Text by key. Keys name issuer, resource and client; values are secrets. */
export interface TokenStorage {
  /** The value under a key; undefined where there is none. */
  get(key: string): Promise<string | undefined>
  /** Replaces what was there. */
  set(key: string, value: string): Promise<void>
  /** Nothing happens where there is none. */
  delete(key: string): Promise<void>
}

/** Keeps nothing beyond the life of the process. */
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
  /** The key is made from it: at least 16 characters, from a keychain or the environment, never beside the file. */
  readonly secret: string
}

/**
 * Keeps tokens in one file, encrypted (AES-256-GCM) and readable by its owner alone. Several processes may share it.
 * @example
 * const storage = fileStorage('.vivarium/tokens', { secret: process.env.TOKEN_SECRET })
 */
export function fileStorage(path: string, options: FileStorageOptions): TokenStorage {
  if (typeof options?.secret !== 'string' || options.secret.length < 16) {
    throw new TypeError('fileStorage needs a secret of at least 16 characters, kept apart from the file')
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
