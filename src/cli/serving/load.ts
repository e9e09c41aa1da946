/** A file that exports a server, loaded: TypeScript too, whose types Node takes out by itself. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Server } from '../../server/index.ts'
import { CliError } from '../exit.ts'

/** What is served of it. The file may have another copy of this package, so it is known by what it can do. */
export type Served = Pick<Server, 'stdio' | 'listen' | 'close'>

export async function loadServer(file: string): Promise<Served> {
  const path = resolve(file)
  if (!existsSync(path)) throw new CliError(1, `There is no file ${clip(file)}`, 'Correct the path')
  let module: Readonly<Record<string, unknown>>
  try {
    module = await import(pathToFileURL(path).href)
  } catch (error) {
    throw new CliError(
      1,
      `${clip(file)} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
      remedyOf(error),
      {
        cause: error,
      },
    )
  }
  const server = [module['default'], module['server']].map(exported).find(isServer)
  if (server === undefined)
    throw new CliError(1, `${clip(file)} exports no server`, `Write: export const server = createServer({ … })`)
  return server
}

/** CommonJS has its exports one level deeper. */
function exported(value: unknown): unknown {
  return isRecord(value) && !isServer(value) && isServer(value['server']) ? value['server'] : value
}

function isServer(value: unknown): value is Served {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['stdio', 'listen', 'close'].every(name => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function')
  )
}

function remedyOf(error: unknown): string | undefined {
  const { code, message = '' } = (error ?? {}) as { readonly code?: string; readonly message?: string }
  if (code === 'ERR_MODULE_NOT_FOUND') {
    const [, name] = /package '([^']+)'/.exec(message) ?? []
    return name === undefined ? 'Correct the path of the import; a relative one ends in .ts or .js' : `npm install ${name}`
  }
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') return 'Node only takes types out: no enum, namespace or parameter property'
  return undefined
}
