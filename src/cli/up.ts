/** `vivarium up`: a live host with the servers of a config file, in the terminal. */
import { mkdirSync, realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createHost } from '../host/create.ts'
import { modelFromEnvironment } from '../host/models/environment.ts'
import { messageOf } from '../stores/store.ts'
import { readSettings } from './settings.ts'
import { runTerminal, type TerminalOptions } from './terminal/terminal.ts'
import { trustIn } from './trust.ts'

export const usage = `Usage: vivarium up [--config FILE] [--data FOLDER] [--store URL] [--conversation NAME] [--trust] [--record FILE]

  --config FILE        Servers, and how the host treats them. Default .mcp.json
                       In it \${VIVARIUM_DATA} is the folder below, \${VIVARIUM_FOLDER} the one it was started in, \${VIVARIUM_NODE} this Node
  --data FOLDER        Where everything is kept. Default VIVARIUM_DATA, else .vivarium
  --store URL          Another store for the host: sqlite:PATH, postgres://… or memory:. Default VIVARIUM_STORE, else sqlite in the folder
  --trust              Starts the commands of the config unasked
  --record FILE        Records the session, with everything that is said, to be played again by replay of vivarium/host
  --conversation NAME  Which conversation is shown. Default main
  --help               This text

The model is that of ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL, else the offline assistant.`

export type UpOptions = Pick<TerminalOptions, 'input' | 'output' | 'signals' | 'interactive' | 'clock'> & {
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Gives the exit status. What is wrong with the arguments, the config or the store is thrown. */
export async function up(args: readonly string[], { env, ...terminal }: UpOptions): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      config: { type: 'string', default: '.mcp.json' },
      data: { type: 'string' },
      store: { type: 'string' },
      trust: { type: 'boolean', default: false },
      record: { type: 'string' },
      conversation: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    terminal.output.write(`${usage}\n`)
    return 0
  }
  const data = folderAt(values.data ?? env['VIVARIUM_DATA'] ?? '.vivarium')
  const store = values.store ?? env['VIVARIUM_STORE'] ?? `sqlite:${join(data, 'host.db')}`
  const around = { ...env, VIVARIUM_DATA: data, VIVARIUM_FOLDER: realpathSync('.'), VIVARIUM_NODE: process.execPath }
  const { host, roots, examples } = readSettings(await textOf(values.config), values.config, around)
  for (const folder of roots) mkdirSync(folder, { recursive: true })
  const model = modelFromEnvironment(env)
  await runTerminal({
    ...terminal,
    env,
    model: model.info,
    place: store,
    examples,
    ...(values.conversation !== undefined && { conversation: values.conversation }),
    open: ({ confirm, ...side }) =>
      createHost({
        ...{ ...host, ...side, config: values.config, env: around, store, model },
        ...(!values.trust && { onConfig: trustIn({ confirm, env }) }),
        ...(values.record !== undefined && { record: values.record }),
      }),
  })
  return 0
}

async function textOf(config: string): Promise<string> {
  try {
    return await readFile(config, 'utf8')
  } catch (cause) {
    const fix = 'Write { "mcpServers": { … } } into it, or name another file with --config'
    throw new TypeError(`The config ${config} cannot be read: ${messageOf(cause)}. ${fix}`, { cause })
  }
}

/** Without links: servers and lists of scopes must mean the same place by it. */
function folderAt(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return realpathSync(path)
}
