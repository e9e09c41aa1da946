/**
 * The command line by `commander`: which verbs there are, what they take, help, and what to say of a word that nobody knows. Only
 * the verb that was asked for is loaded, so that `--version` and `--help` cost nothing.
 */
import { Command, CommanderError, Help, Option } from 'commander'
import { CliError, type Io } from './io.ts'

/** What was typed behind a verb. */
export interface VerbCall<Options = Readonly<Record<string, unknown>>> {
  /** Words that are no options, in their order, up to `--`. */
  readonly words: readonly string[]
  /** What stands behind `--`: a program and its arguments. */
  readonly command: readonly string[] | undefined
  /** As the verb has declared them. */
  readonly options: Options
}

/** How the value of an option is read. */
interface OptionRules {
  /** What an option is that was not given; the help shows it. */
  readonly fallback?: string | boolean
  readonly choices?: readonly string[]
  /** May be given several times; becomes a list. */
  readonly repeated?: boolean
  /** What the text becomes; throws a TypeError that says what is wrong with it. */
  readonly parse?: (text: string) => unknown
  /** Left out of the help. */
  readonly hidden?: boolean
  /** The heading below which the help lists it. */
  readonly group?: string
}

/** What a verb says of itself. Flags and arguments are written as commander has them: `--port <number>`, `[words...]`. */
export interface CommandLike {
  /** `<name>` is needed, `[name]` is not, `[names...]` stands for many. */
  argument(name: string, about: string): CommandLike
  /** `--name <value>`, `--name [value]`, `--name` or `--no-name`. */
  option(flags: string, about: string, rules?: OptionRules): CommandLike
  /** Lines below the help: a command, and what it does. */
  examples(lines: readonly (readonly [line: string, about: string])[]): CommandLike
  /** Paragraphs below the options. */
  note(text: string): CommandLike
  /** A word behind the verb that has options and an action of its own. */
  command(name: string, summary: string): CommandLike
  /** Resolves to the exit code. */
  action<Options>(run: (call: VerbCall<Options>) => Promise<number>): CommandLike
}

/** The file of a verb: declares what it takes and what it does. */
export type Verb = (command: CommandLike, io: Io) => void

/** Runs one command line, without the name of the program. Throws what is to be told. */
export async function run(args: readonly string[], io: Io, version: string): Promise<number> {
  const dashes = args.indexOf('--')
  const words = dashes === -1 ? args : args.slice(0, dashes)
  const behind = dashes === -1 ? undefined : args.slice(dashes + 1)
  const program = programOf(io, version)
  let code = 0
  const declared = declaring(behind, given => {
    code = given
  })
  const wanted = words.find(word => !word.startsWith('-'))
  const asked = wanted === 'help' ? words[words.indexOf('help') + 1] : wanted
  for (const entry of verbs) {
    const command = program.command(entry.name).summary(entry.summary).description(entry.summary).helpGroup(groups[entry.group])
    if (entry.name === asked) await declare(entry, command, io, declared)
  }
  // Commander would print the general help, as if the verb existed.
  const helps = wanted === 'help' || words.includes('--help') || words.includes('-h')
  if (helps && asked !== undefined && !verbs.some(({ name }) => name === asked)) throw await noVerb(asked)
  try {
    await program.parseAsync(words.length === 0 ? ['--help'] : [...words], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return 0
    throw new CliError(misspelt(error), helpLine(asked), { cause: error })
  }
  return code
}

/** What a verb takes, for those who propose words for it. Undefined: there is no such verb. `word` is one behind the verb that has options of its own. */
export async function shapeOf(name: string, word: string | undefined, io: Io) {
  const entry = verbs.find(each => each.name === name)
  if (entry === undefined) return undefined
  const whole = new Command(name).helpOption('-h, --help', 'Print this help')
  const declared = declaring(undefined, () => {})
  await declare(entry, whole, io, declared)
  const command = whole.commands.find(each => each.name() === word) ?? whole
  return {
    /** In their order; the last may stand for many. */
    arguments: command.registeredArguments.map(each => ({ name: each.name(), many: each.variadic })),
    /** Words behind the verb that have options of their own. */
    commands: command.commands.map(each => ({ name: each.name(), about: each.description() })),
    options: command.options
      .filter(({ hidden }) => !hidden)
      .map(({ long, flags, description, required, optional, argChoices }) => ({
        name: long ?? flags,
        about: description,
        /** What its value is called; undefined where it has none. */
        value: required || optional ? (/[<[]([^>\]]+)[>\]]/.exec(flags)?.[1] ?? 'value') : undefined,
        choices: argChoices ?? [],
      })),
  }
}

/** The command without its verbs. */
function programOf({ output }: Io, version: string): Command {
  return new Command('vivarium')
    .description('Inspect, call, test, serve and connect MCP servers of any revision, in any language.')
    .version(version, '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Print this help')
    .usage('VERB TARGET [arguments] [options]')
    .addHelpCommand(
      new Command('help').argument('[verb]').summary('Print the help of a verb').helpOption(false).helpGroup(groups.shell),
    )
    .configureHelp({
      sortSubcommands: false,
      showGlobalOptions: false,
      // What is special about a verb comes before what most verbs have.
      groupItems: (_, visible, groupOf) => {
        const common = (item: (typeof visible)[number]): number => (groupOf(item) === connectionGroup ? 1 : 0)
        return new Help().groupItems(
          visible.toSorted((one, two) => common(one) - common(two)),
          visible,
          groupOf,
        )
      },
    })
    .configureOutput({ writeOut: text => void output.write(text), outputError: () => {} })
    .addHelpText('after', `\n${targets}`)
    .enablePositionalOptions()
    .exitOverride()
}

/** The heading below which the help of a verb lists how a server is found and reached. */
export const connectionGroup = 'Connection options:'

/** Stands below the help. */
const targets = `TARGET is one of:
  https://host/mcp    the address of a server: http, https, ws or wss
  ./server.ts         a file that exports a server, or any other program
  -- command args     a program that speaks MCP over stdio; always goes last
  @scope/name         an npm package with a command; also npm:NAME
  name, cursor:name   a server in a config file of an MCP client on this machine

Exit codes:
  0  success
  1  wrong usage, or the command failed
  3  sign in first
  4  the server cannot be reached
  5  the tool reported an error

vivarium VERB --help prints the options and examples of one verb.`

/** Loads a verb and declares it; adds `--format` where the verb speaks to programs, too. */
async function declare(entry: VerbEntry, command: Command, io: Io, as: (command: Command) => CommandLike): Promise<void> {
  const verb = await entry.load()
  verb(as(command), io)
  if (entry.plain || command.options.some(({ long }) => long === '--format')) return
  command.addOption(
    new Option('--format <kind>', 'Print text for people or JSON for programs').choices(['text', 'json']).default('text'),
  )
}

/** Commander in the words of `CommandLike`. */
function declaring(behind: readonly string[] | undefined, settle: (code: number) => void): (command: Command) => CommandLike {
  const as = (command: Command): CommandLike => {
    const after = (_: Command): CommandLike => like
    const like: CommandLike = {
      argument: (name, about) => after(command.argument(name, about)),
      option: (flags, about, rules = {}) => after(command.addOption(optionOf(flags, about, rules))),
      examples: lines => after(command.addHelpText('after', `\nExamples:\n${exampleLines(lines)}`)),
      note: text => after(command.addHelpText('after', ({ command: shown }) => `\n${wrapped(text, shown)}`)),
      // What stands behind that word is its own, also where the verb has an option of the same name.
      command: (name, summary) => as(command.enablePositionalOptions().command(name).description(summary)),
      action: run =>
        after(
          command.action(async () => {
            // The verb knows what it declared: the shape of its options is its own word.
            const options = command.opts() as Parameters<typeof run>[0]['options']
            settle(await run({ words: command.args, command: behind, options }))
          }),
        ),
    }
    return like
  }
  return as
}

/** An option of commander. A failure of its parser names the option. */
function optionOf(flags: string, about: string, { fallback, choices, repeated, parse, hidden, group }: OptionRules): Option {
  const option = new Option(flags, repeated === true ? `${about} (repeatable)` : about)
  if (group !== undefined) option.helpGroup(group)
  if (choices !== undefined) option.choices(choices)
  if (fallback !== undefined) option.default(fallback)
  if (hidden === true) option.hideHelp()
  const read = (text: string): unknown => {
    try {
      return parse === undefined ? text : parse(text)
    } catch (error) {
      throw new CliError(`${option.long}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  if (repeated === true)
    option.argParser<unknown>((text, before) => [...(Array.isArray(before) ? (before as unknown[]) : []), read(text)])
  else if (parse !== undefined) option.argParser<unknown>(read)
  return option
}

/** What an example does, then the example: lines of any length can be read and copied. */
function exampleLines(lines: readonly (readonly [string, string])[]): string {
  return lines.map(([line, about]) => `  # ${about}\n  ${line}`).join('\n')
}

/** Paragraphs as wide as the rest of the help. */
function wrapped(text: string, command: Command): string {
  return command.createHelp().boxWrap(text, command.configureOutput().getOutHelpWidth?.() ?? 80)
}

/** `error: unknown option '--x'\n(Did you mean --y?)` → `Unknown option '--x'. Did you mean --y?`, for instance. */
function misspelt({ message }: CommanderError): string {
  const [first = '', ...more] = message.replace(/^error: /, '').split('\n')
  const hint = more.map(line => line.replace(/^\((.*)\)$/, '$1')).join(' ')
  const sentence = `${first.charAt(0).toUpperCase()}${first.slice(1)}`
    .replace(/^Unknown command/, 'There is no verb')
    .replace(/^(Option '.*') argument missing$/, '$1 needs a value')
  // What most programs call so, and here is one of two formats.
  if (hint === '' && first === "unknown option '--json'") return `${sentence}. Did you mean --format json?`
  return hint === '' ? sentence : `${sentence.replace(/\.$/, '')}. ${hint}`
}

/** The failure for `help` of a verb that there is none of. */
async function noVerb(word: string): Promise<CliError> {
  // Loaded with much that a good command line does not need.
  const { meantText } = await import('../core/suggestion.ts')
  const names = verbs.map(({ name }) => name)
  const meant = meantText(word, names)
  return new CliError(`There is no verb '${word.slice(0, 40)}'${meant === undefined ? '' : `. ${meant}`}`, 'Run vivarium --help')
}

/** The help that is suggested after a mistake. */
function helpLine(verb: string | undefined): string {
  return verbs.some(({ name }) => name === verb) ? `Run vivarium ${verb} --help` : 'Run vivarium --help'
}

// The verbs, in the order in which the help shows them.

/** The titles under which the help lists verbs. */
const groups = {
  use: 'Use a server:',
  make: 'Write and publish a server:',
  judge: 'Test and record:',
  run: 'Connect many servers:',
  shell: 'Help and shell:',
} as const

/** A verb before its file is loaded. */
interface VerbEntry {
  readonly name: string
  readonly group: keyof typeof groups
  /** Its line in the help. */
  readonly summary: string
  /** Loads the file of the verb. */
  readonly load: () => Promise<Verb>
  /** It speaks to people only: it has no `--format`. Others may also declare a `--format` of their own. */
  readonly plain: boolean
}

/** A row of the table below. The file of a verb exports it under its name. */
function entry<Name extends string>(
  name: Name,
  group: VerbEntry['group'],
  summary: string,
  load: () => Promise<Readonly<Record<Name, Verb>>>,
  plain = false,
): VerbEntry {
  return { name, group, summary, load: async () => (await load())[name], plain }
}

/** Every verb of the command. */
export const verbs: readonly VerbEntry[] = [
  entry(
    'list',
    'use',
    'List what a server offers: tools, resources, templates, prompts, events',
    () => import('./commands/list.ts'),
  ),
  entry('call', 'use', 'Call a tool', () => import('./commands/call.ts')),
  entry('read', 'use', 'Read a resource', () => import('./commands/read.ts')),
  entry('prompt', 'use', 'Get the messages of a prompt', () => import('./commands/prompt.ts')),
  entry('listen', 'use', 'Listen for events, pushes, updates and list changes', () => import('./commands/listen.ts')),
  entry('inspect', 'use', 'Show what a server is: revision, extensions, scopes, cost', () => import('./commands/inspect.ts')),
  entry(
    'doctor',
    'use',
    'Find out why a server or config file does not work, and how to fix it',
    () => import('./commands/doctor.ts'),
  ),
  entry('new', 'make', 'Create a server: one TypeScript file, with tests', () => import('./commands/new.ts')),
  entry('serve', 'make', 'Serve a file that exports a server, over HTTP or stdio', () => import('./commands/serve.ts')),
  entry(
    'bundle',
    'make',
    'Package a server: an MCPB bundle, and server.json for the registry',
    () => import('./commands/bundle.ts'),
  ),
  entry('test', 'judge', 'Test a server, client or host for conformance', () => import('./commands/test.ts')),
  entry('record', 'judge', 'Record the traffic between a client and a server', () => import('./commands/record.ts')),
  entry('replay', 'judge', 'Replay a recording against a server, or serve it as a mock', () => import('./commands/replay.ts')),
  entry('gateway', 'run', 'Serve one endpoint in front of many servers', () => import('./commands/gateway.ts')),
  entry('up', 'run', 'Start a live host in the terminal', () => import('./commands/up.ts'), true),
  entry(
    'completions',
    'shell',
    'Print a completion script for bash, zsh or fish',
    () => import('./commands/completions.ts'),
    true,
  ),
]
