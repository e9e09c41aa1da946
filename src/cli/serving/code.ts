/** A file that exports a server, loaded: TypeScript too, whose types Node takes out by itself. */
import { spawnSync } from 'node:child_process'
import { existsSync, type FSWatcher, readdirSync, watch } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ResourceAuthorization } from '../../auth/resource/options.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Server } from '../../server/index.ts'
import { messageOf } from '../../stores/store.ts'
import { CliError } from '../io.ts'

/** What is served of it. The file may have another copy of this package, so it is known by what it can do. */
type ServableServer = Pick<Server, 'stdio' | 'listen' | 'close'>

/** What a file exports. */
interface LoadedFile {
  readonly server: ServableServer
  /** What the file exports as `auth`: what `oauth` gives. */
  readonly auth: ResourceAuthorization | undefined
}

/** Loads a file. Throws a failure that says what to correct in it. */
export async function loadServer(file: string): Promise<LoadedFile> {
  const path = resolve(file)
  if (!existsSync(path)) throw new CliError(`The file ${clip(file)} does not exist`, 'Correct the path')
  if (!/\.[cm]?[jt]sx?$/i.test(path))
    throw new CliError(`${clip(file)} is not a .ts or .js file`, 'Pass the file that exports the server')
  let module: Readonly<Record<string, unknown>>
  try {
    module = await import(pathToFileURL(path).href)
  } catch (error) {
    const message = `${clip(file)} cannot be loaded: ${placeOf(error, path)}${messageOf(error)}`
    throw new CliError(message, remedyOf(error), { cause: error })
  }
  const server = [module['default'], module['server']].map(exported).find(isServer)
  if (server === undefined)
    throw new CliError(`${clip(file)} does not export a server`, 'Write export const server = createServer({ … })')
  return { server, auth: [module['auth']].find(isAuthorization) }
}

/** Whether a value is what `oauth` gives. */
function isAuthorization(value: unknown): value is ResourceAuthorization {
  return isRecord(value) && isRecord(value['settings']) && typeof value['disconnect'] === 'function'
}

/** CommonJS has its exports one level deeper. */
function exported(value: unknown): unknown {
  return isRecord(value) && !isServer(value) && isServer(value['server']) ? value['server'] : value
}

/** Whether a value can be served. */
function isServer(value: unknown): value is ServableServer {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['stdio', 'listen', 'close'].every(name => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function')
  )
}

/** Of a syntax error Node says the line only above its stack. */
function placeOf(error: unknown, path: string): string {
  if (!(error instanceof SyntaxError) && (error as { readonly code?: string } | null)?.code !== 'ERR_INVALID_TYPESCRIPT_SYNTAX')
    return ''
  const at = /^(?:file:\/\/)?(\/.+|[A-Za-z]:.+):(\d+)$/m
  const [, place, line] = at.exec((error as Error).stack ?? '') ?? at.exec(checked(path)) ?? []
  return place === undefined ? '' : `${clip(basename(place))}, line ${line}: `
}

/** Of JavaScript it is told only to a terminal. */
function checked(path: string): string {
  return spawnSync(process.execPath, ['--check', path], { encoding: 'utf8', timeout: 5_000 }).stderr
}

/** What helps against an error of Node's loader. */
function remedyOf(error: unknown): string | undefined {
  const { code, message = '' } = (error ?? {}) as { readonly code?: string; readonly message?: string }
  if (code === 'ERR_MODULE_NOT_FOUND') {
    const [, name] = /package '([^']+)'/.exec(message) ?? []
    return name === undefined
      ? 'Correct the path of the import; a relative path must end in .ts or .js'
      : `Run npm install ${name}`
  }
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
    return 'Remove enums, namespaces and parameter properties: Node only strips types'
  return undefined
}

/** Files whose change is worth a reload. */
const code = /\.[cm]?[jt]sx?$/
/** Folders that hold no code of the user. */
const skipped = new Set(['node_modules', 'dist', 'coverage'])
/** Editors write a file in several steps. */
const settleMs = 120
/** Each costs a watcher of the system. */
const mostFolders = 500

/** Calls back after a change of code in a folder or below it. */
export function watchCode(folder: string, changed: (file: string) => void): { close(): void } {
  const watchers = new Map<string, FSWatcher>()
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    for (const path of foldersIn(folder)) if (!watchers.has(path)) follow(path)
  }
  const follow = (path: string): void => {
    const watcher = watch(path, (kind, file) => {
      // A folder may have come.
      if (kind === 'rename') look()
      if (file === null || !code.test(file)) return
      clearTimeout(timer)
      timer = setTimeout(() => changed(file), settleMs)
    })
    const end = (): void => {
      watchers.delete(path)
      watcher.close()
    }
    // A folder that vanished has nothing more to tell.
    watcher.on('error', end)
    watchers.set(path, watcher)
  }
  look()
  return {
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

/** A folder and those below it. */
function foldersIn(folder: string): readonly string[] {
  const found = [folder]
  for (const path of found) {
    if (found.length >= mostFolders) break
    for (const entry of entriesOf(path))
      if (entry.isDirectory() && !entry.name.startsWith('.') && !skipped.has(entry.name)) found.push(join(path, entry.name))
  }
  return found.slice(0, mostFolders)
}

/** What lies in a folder; nothing where it is gone. */
function entriesOf(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch {
    return []
  }
}
