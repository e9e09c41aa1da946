/**
 * Whether the commands of a config may be started: a config that came with a folder says what runs on this machine. It is shown and
 * asked about once; a yes counts for this file with this text, and is kept with the user, where no folder can bring it along.
 */
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import { type Why, why } from '../core/why.ts'
import type { HostConfig } from '../host/config/read.ts'
import type { HostOptions } from '../host/options.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { brief } from './terminal/paint.ts'
import type { Confirm } from './terminal/questions.ts'

export interface TrustOptions {
  readonly confirm: Confirm
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Files that are remembered; the oldest are asked about again. */
const most = 1_000
const lineLength = 300
/** Whoever says yes has to see all of it. */
const commandLength = 10_000

export function trustIn({ confirm, env }: TrustOptions): NonNullable<HostOptions['onConfig']> {
  const book = join(env['XDG_CONFIG_HOME'] ?? join(env['HOME'] ?? homedir(), '.config'), 'vivarium', 'trusted.json')
  return async (config, text) => {
    const commands = commandsOf(config)
    if (commands.length === 0 || isOwn(config.file)) return undefined
    const digest = hash('sha256', JSON.stringify([realpathSync(config.file), text]), 'base64url')
    const known = read(book)
    if (known.includes(digest)) return undefined
    const yes = await confirm(`${brief(config.file, lineLength)} wants to start these commands. Do you trust it?`, commands)
    if (yes !== true) return refusal(config.file, commands, yes === undefined)
    write(book, [...known, digest].slice(-most))
    return undefined
  }
}

/** As they will be started; of their variables the names only, since values may be secrets. */
function commandsOf({ servers }: HostConfig): readonly string[] {
  return [...servers.values()].flatMap(({ name, target, disabled }) => {
    if (typeof target === 'string' || disabled) return []
    const { command, args = [], env = {}, cwd } = target
    const around = [
      ...(cwd === undefined ? [] : [`in ${cwd}`]),
      ...(Object.keys(env).length === 0 ? [] : [`with ${Object.keys(env).join(', ')}`]),
    ]
    const line = [command, ...args].map(word => (/^[\w./:@=,+-]+$/.test(word) ? word : JSON.stringify(word))).join(' ')
    return [brief(`${name}: ${line}${around.length === 0 ? '' : ` (${around.join(', ')})`}`, commandLength)]
  })
}

/** The examples that this program came with are as good as the program. */
function isOwn(file: string): boolean {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder)
  const examples = join(folder, 'examples')
  return existsSync(examples) && realpathSync(resolve(file)).startsWith(`${realpathSync(examples)}${sep}`)
}

function refusal(file: string, commands: readonly string[], nobody: boolean): Why {
  const said = nobody ? 'and there is nobody to ask without a terminal' : 'and you did not agree'
  return why(
    'CONFIG_NOT_TRUSTED',
    'up.trust',
    `${brief(file, lineLength)} wants to start ${commands.length} ${commands.length === 1 ? 'command' : 'commands'} (${brief(commands.join('; '), lineLength)}), ${said}`,
    'Read the file; then start with --trust, or once in a terminal and say yes',
  )
}

function read(book: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(readFileSync(book, 'utf8'))
    const digests = isRecord(value) ? value['digests'] : undefined
    return Array.isArray(digests) ? digests.filter(each => typeof each === 'string') : []
  } catch {
    // Not there, or of no use: then everything is asked about again.
    return []
  }
}

function write(book: string, digests: readonly string[]): void {
  mkdirSync(dirname(book), { recursive: true, mode: 0o700 })
  writeFileSync(`${book}.new`, JSON.stringify({ digests }), { mode: 0o600 })
  renameSync(`${book}.new`, book)
}
