/** `vivarium up`: a live host with the servers of a config file, in the terminal. */
import { mkdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Why } from '../../core/suggestion.ts'
import { createHost } from '../../host/create.ts'
import type { Host, HostOptions } from '../../host/host.ts'
import { modelFromEnvironment } from '../../host/models/providers.ts'
import { messageOf } from '../../stores/store.ts'
import type { HostConsole } from '../host-console.ts'
import { RunningSettings, readSettings } from '../host-settings.ts'
import { CliError, type Io, untilInterrupted } from '../io.ts'
import { printerOf } from '../print.ts'
import type { Verb } from '../program.ts'
import type { Confirm } from '../terminal/questions.ts'
import { runTerminal } from '../terminal/terminal.ts'
import { say } from '../terminal/text.ts'
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
  /** Serve the web console too. */
  readonly web?: boolean
  /** False: leave the browser alone. */
  readonly open?: boolean
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
    .option('--web', 'Serve the web console on 127.0.0.1:7425 too; without a terminal, alone')
    .option('--no-open', 'Do not open the browser for the console')
    .note(
      `In the config file, \${VIVARIUM_DATA} is the data folder, \${VIVARIUM_FOLDER} the folder of the start and \${VIVARIUM_NODE} this Node.
The model comes from ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL. Without them, an offline assistant answers.`,
    )
    .examples([
      ['vivarium up', 'Start with the servers of ./.mcp.json'],
      ['vivarium up --config ~/.cursor/mcp.json', 'Start with the servers of another program'],
      ['vivarium up --web', 'Talk to the agent in the browser and in the terminal'],
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
  const conversation = options.conversation ?? 'main'
  const page = options.web === true ? await consoleOf(options, conversation, examples, io) : undefined
  /** Makes the host; the config is read again when it changes. */
  const open: OpenHost = async (side, confirm) => {
    const settings = new RunningSettings({ written, file: options.config, env: around, told: side.onTrouble })
    const made = await createHost({
      ...{ ...host, ...side, config: options.config, env: around, store, model },
      onConfig: settings.after(trustIn({ confirm, env: around }, digest)),
      ...(options.record !== undefined && { record: options.record }),
    })
    settings.host = made
    return made
  }
  if (page !== undefined && !io.interactive) return runWithPage(page, conversation, open, io)
  await runTerminal({
    input,
    output,
    env,
    signals: process,
    model: model.info,
    place: store,
    examples,
    conversation,
    page: () => page?.page,
    open: async ({ confirm, ...side }) => {
      if (page === undefined) return open(side, confirm)
      const made = await open(page.observe(side, side), page.confirm(confirm))
      await page.open(made)
      return made
    },
  }).finally(() => page?.close())
  return 0
}

/** Makes a host: who is told, and who is asked about a changed config. */
type OpenHost = (side: HostOptions & Required<Pick<HostOptions, 'onTrouble'>>, confirm: Confirm) => Promise<Host>

/** The web console, which knows the host from its start on. */
async function consoleOf(options: UpOptions, conversation: string, examples: readonly string[], io: Io): Promise<HostConsole> {
  const { HostConsole: Opened } = await import('../host-console.ts')
  const { aside } = printerOf(io)
  return new Opened({
    ...{ io, conversation, examples, opens: options.open !== false },
    name: basename(dirname(resolve(options.config))),
    failed: error => aside.line(say`console: ${messageOf(error)}`),
  })
}

/** Without a terminal: the page alone, until the process is ended. */
async function runWithPage(page: HostConsole, conversation: string, open: OpenHost, io: Io): Promise<number> {
  const { aside } = printerOf(io)
  const onTrouble = ({ message, fix }: Why): void => aside.line(say`${message}\n  → ${fix}`)
  const host = await open(page.observe({ onTrouble, conversationOf: () => conversation }), page.confirm(undefined))
  try {
    await page.open(host)
    for (const line of page.page?.lines ?? []) aside.line(say`${line}`)
    await host.conversation(conversation).resume()
    await host.open()
    await untilInterrupted(io.signal)
  } finally {
    await page.close()
    await host.close()
  }
  return 0
}

/** Without links: servers and lists of scopes must mean the same place by it. */
function folderAt(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return realpathSync(path)
}
