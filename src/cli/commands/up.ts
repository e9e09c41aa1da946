/** `vivarium up`: a live host with the servers of a config file, in the terminal. */
import { mkdirSync, realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHost } from '../../host/create.ts'
import { modelFromEnvironment } from '../../host/models/providers.ts'
import { messageOf } from '../../stores/store.ts'
import { CliError } from '../errors.ts'
import { RunningSettings, readSettings } from '../host-settings.ts'
import type { Io } from '../io.ts'
import type { Verb } from '../program.ts'
import { runTerminal } from '../terminal/terminal.ts'
import { type FileToUse, fileToUse } from '../trust/config-file.ts'
import { confirmIn, consentDigest, decideConsent, trustIn, trustOption } from '../trust/consent.ts'
import { placeOf, useData } from '../trust/local-files.ts'

interface UpOptions {
  readonly config: string
  readonly data?: string
  readonly store?: string
  readonly conversation?: string
  readonly trust?: boolean
  readonly record?: string
}

export const up: Verb = {
  name: 'up',
  summary: 'The live host in the terminal, on a config file',
  plain: true,
  declare(command, io) {
    trustOption(command)
      .option('--config <file>', 'Servers, and how the host treats them', { fallback: '.mcp.json' })
      .option('--data <folder>', 'Where everything is kept (default: VIVARIUM_DATA, else .vivarium)')
      .option(
        '--store <url>',
        'Another store for the host: sqlite:PATH, postgres://… or memory: (default: VIVARIUM_STORE, else sqlite in the folder)',
      )
      .option('--record <file>', 'Record the session, with everything that is said, to be played again')
      .option('--conversation <name>', 'Which conversation is shown (default: main)')
      .note(
        `In the config \${VIVARIUM_DATA} is the folder of --data, \${VIVARIUM_FOLDER} the one it was started in, \${VIVARIUM_NODE} this Node.
The model is that of ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL, else the offline assistant.`,
      )
      .examples([
        ['vivarium up', 'the servers of ./.mcp.json'],
        ['vivarium up --config ~/.cursor/mcp.json', 'those of another program'],
      ])
      .action<UpOptions>(({ options }) => runHost(options, io))
  },
}

/** What is wrong with the config or the store is thrown. */
async function runHost(options: UpOptions, io: Io): Promise<number> {
  const { input, output, env } = io
  const named = options.data ?? env['VIVARIUM_DATA']
  const data = placeOf(named ?? '.vivarium')
  // Known before the question: files that are named by them are shown as they will be used.
  const around = { ...env, VIVARIUM_DATA: data, VIVARIUM_FOLDER: realpathSync('.'), VIVARIUM_NODE: process.execPath }
  const { parsed, digest } = await agreedConfig(options, io, around)
  // Nothing is made or filled in before that.
  const made = named === undefined ? await useData('.vivarium', io, options) : folderAt(named)
  if (made !== data) throw new CliError(1, `The folder ${data} has moved since you were asked`, 'Start the command again')
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

/** What the user agreed to, read once: by it the host is set, and what it reads itself has to be the same. */
async function agreedConfig(
  { config, trust }: UpOptions,
  io: Io,
  env: Io['env'],
): Promise<Pick<FileToUse, 'parsed'> & { readonly digest: string }> {
  const text = await textOf(config)
  const file = await fileToUse({ file: config, text, env })
  if (trust !== true) {
    const decided = await decideConsent(file, { confirm: confirmIn(io), env: io.env })
    if ('code' in decided) throw new CliError(1, decided.message, decided.fix)
  }
  return { parsed: file.parsed, digest: consentDigest(file) }
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
