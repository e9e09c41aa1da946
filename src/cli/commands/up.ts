/** `vivarium up`: a live host with the servers of a config file, in the terminal. */
import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { createHost } from '../../host/create.ts'
import { modelFromEnvironment } from '../../host/models/providers.ts'
import { RunningSettings, readSettings } from '../host-settings.ts'
import { CliError, type Io } from '../io.ts'
import type { Verb } from '../program.ts'
import { runTerminal } from '../terminal/terminal.ts'
import { agreedConfig, placeOf, trustIn, trustOption, useData } from '../trust/consent.ts'

/** The options of `vivarium up`. */
interface UpOptions {
  readonly config: string
  /** The folder in which everything is kept. */
  readonly data?: string
  /** The URL of another store for the host. */
  readonly store?: string
  /** The conversation that is shown. */
  readonly conversation?: string
  /** Use the config without a question. */
  readonly trust?: boolean
  /** The file into which the session is recorded. */
  readonly record?: string
}

/** `vivarium up`. */
export const up: Verb = (command, io) => {
  trustOption(command)
    .option('--config <file>', 'Use the servers and settings of this file', { fallback: '.mcp.json' })
    .option('--data <folder>', 'Keep all data in this folder (default: VIVARIUM_DATA, otherwise .vivarium)')
    .option(
      '--store <url>',
      'Use another store: sqlite:PATH, postgres://… or memory: (default: VIVARIUM_STORE, otherwise SQLite in the data folder)',
    )
    .option('--record <file>', 'Record the whole session, to replay it later')
    .option('--conversation <name>', 'Show this conversation (default: main)')
    .note(
      `In the config file, \${VIVARIUM_DATA} is the data folder, \${VIVARIUM_FOLDER} the folder of the start and \${VIVARIUM_NODE} this Node.
The model comes from ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL. Without them, an offline assistant answers.`,
    )
    .examples([
      ['vivarium up', 'Start with the servers of ./.mcp.json'],
      ['vivarium up --config ~/.cursor/mcp.json', 'Start with the servers of another program'],
    ])
    .action<UpOptions>(({ options }) => runHost(options, io))
}

/** What is wrong with the config or the store is thrown. */
async function runHost(options: UpOptions, io: Io): Promise<number> {
  const { input, output, env } = io
  const named = options.data ?? env['VIVARIUM_DATA']
  const data = placeOf(named ?? '.vivarium')
  // Known before the question: files that are named by them are shown as they will be used.
  const around = { ...env, VIVARIUM_DATA: data, VIVARIUM_FOLDER: realpathSync('.'), VIVARIUM_NODE: process.execPath }
  const { parsed, digest } = await agreedConfig(options.config, options.trust, io, around)
  // Nothing is made or filled in before that.
  const made = named === undefined ? await useData('.vivarium', io, options) : folderAt(named)
  if (made !== data) throw new CliError(`The folder ${data} was moved after you approved it`, 'Run the command again')
  const store = options.store ?? env['VIVARIUM_STORE'] ?? `sqlite:${join(data, 'host.db')}`
  const { host, roots, examples, written } = readSettings(parsed, options.config, around)
  for (const folder of roots) mkdirSync(folder, { recursive: true })
  const model = modelFromEnvironment(env)
  await runTerminal({
    input,
    output,
    env,
    signals: process,
    model: model.info,
    place: store,
    examples,
    ...(options.conversation !== undefined && { conversation: options.conversation }),
    open: async ({ confirm, ...side }) => {
      const settings = new RunningSettings({ written, file: options.config, env: around, told: side.onTrouble })
      const made = await createHost({
        ...{ ...host, ...side, config: options.config, env: around, store, model },
        onConfig: settings.after(trustIn({ confirm, env: around }, digest)),
        ...(options.record !== undefined && { record: options.record }),
      })
      settings.host = made
      return made
    },
  })
  return 0
}

/** Without links: servers and lists of scopes must mean the same place by it. */
function folderAt(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return realpathSync(path)
}
