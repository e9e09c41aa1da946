/**
 * The command line by `commander`: which verbs there are, what they take, help, and what to say of a word that nobody knows. Only
 * the verb that was asked for is loaded, so that `--version` and `--help` cost nothing.
 */
import { Command, CommanderError, Option } from 'commander'
import { CliError } from './errors.ts'
import type { Io } from './io.ts'
import { groups, type VerbEntry, verbs } from './verbs.ts'

/** What was typed behind a verb. */
export interface VerbCall<Options = Readonly<Record<string, unknown>>> {
  /** Words that are no options, in their order, up to `--`. */
  readonly words: readonly string[]
  /** What stands behind `--`: a program and its arguments. */
  readonly command: readonly string[] | undefined
  readonly options: Options
}

interface OptionRules {
  readonly fallback?: string | boolean
  readonly choices?: readonly string[]
  /** May be given several times; becomes a list. */
  readonly repeated?: boolean
  /** What the text becomes; throws a TypeError that says what is wrong with it. */
  readonly parse?: (text: string) => unknown
  readonly hidden?: boolean
}

/** What a verb says of itself. Flags and arguments are written as commander has them: `--port <number>`, `[words...]`. */
export interface CommandLike {
  argument(name: string, about: string): CommandLike
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

export interface Verb {
  readonly name: string
  readonly summary: string
  /** Speaks to people only: it has no `--format`. A verb may also declare a `--format` of its own. */
  readonly plain?: boolean
  declare(command: CommandLike, io: Io): void
}

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
  if (wanted === 'help' && asked !== undefined && !verbs.some(({ name }) => name === asked)) throw await noVerb(asked)
  try {
    await program.parseAsync(words.length === 0 ? ['--help'] : [...words], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return 0
    throw new CliError(1, misspelt(error), helpLine(asked), { cause: error })
  }
  return code
}

/** What a verb takes, for those who propose words for it. */
export interface VerbShape {
  /** The names of its arguments, in their order; the last may stand for many. */
  readonly arguments: readonly { readonly name: string; readonly many: boolean }[]
  readonly options: readonly OptionShape[]
  readonly commands: readonly { readonly name: string; readonly about: string }[]
}

export interface OptionShape {
  readonly name: string
  readonly about: string
  /** What its value is called; undefined where it has none. */
  readonly value: string | undefined
  readonly choices: readonly string[]
}

/** Undefined: there is no such verb. `word` is one behind the verb that has options of its own. */
export async function shapeOf(name: string, word: string | undefined, io: Io): Promise<VerbShape | undefined> {
  const entry = verbs.find(each => each.name === name)
  if (entry === undefined) return undefined
  const whole = new Command(name).helpOption('-h, --help', 'Print this help')
  await declare(
    entry,
    whole,
    io,
    declaring(undefined, () => {}),
  )
  const command = whole.commands.find(each => each.name() === word) ?? whole
  return {
    arguments: command.registeredArguments.map(each => ({ name: each.name(), many: each.variadic })),
    commands: command.commands.map(each => ({ name: each.name(), about: each.description() })),
    options: command.options
      .filter(({ hidden }) => !hidden)
      .map(({ long, flags, description, required, optional, argChoices }) => ({
        name: long ?? flags,
        about: description,
        value: required || optional ? (/[<[]([^>\]]+)[>\]]/.exec(flags)?.[1] ?? 'value') : undefined,
        choices: argChoices ?? [],
      })),
  }
}

function programOf({ output }: Io, version: string): Command {
  return new Command('vivarium')
    .description('See, call, judge, serve and bridge MCP servers, whatever they speak and whoever wrote them.')
    .version(version, '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Print this help')
    .usage('VERB TARGET [words] [options]')
    .addHelpCommand(
      new Command('help').argument('[verb]').summary('The help of a verb').helpOption(false).helpGroup(groups.shell),
    )
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false })
    .configureOutput({ writeOut: text => void output.write(text), outputError: () => {} })
    .addHelpText('after', `\n${targets}`)
    .enablePositionalOptions()
    .exitOverride()
}

const targets = `TARGET is one of
  https://host/mcp     the address of a server (http, https, ws, wss)
  ./server.ts          a file that exports a server, or a program that is one
  -- command args      a program that speaks over its standard input and output; stands last
  @scope/package       an npm package with a command; npm:NAME to be sure it is one
  name, cursor:name    a server of a config file that some client on this machine has

Exit codes: 0 fine · 1 wrong words, or it failed · 3 sign in first · 4 cannot be reached · 5 the tool reported an error`

async function declare(entry: VerbEntry, command: Command, io: Io, as: (command: Command) => CommandLike): Promise<void> {
  const verb = await entry.load()
  verb.declare(as(command), io)
  if (verb.plain === true || command.options.some(({ long }) => long === '--format')) return
  command.addOption(new Option('--format <kind>', 'text for people, json for programs').choices(['text', 'json']).default('text'))
}

/** Commander in the words of `CommandLike`. */
function declaring(behind: readonly string[] | undefined, settle: (code: number) => void): (command: Command) => CommandLike {
  const as = (command: Command): CommandLike => {
    const after = (_: Command): CommandLike => like
    const like: CommandLike = {
      argument: (name, about) => after(command.argument(name, about)),
      option: (flags, about, rules = {}) => after(command.addOption(optionOf(flags, about, rules))),
      examples: lines => after(command.addHelpText('after', `\nExamples:\n${exampleLines(lines)}`)),
      note: text => after(command.addHelpText('after', `\n${text}`)),
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

function optionOf(flags: string, about: string, { fallback, choices, repeated, parse, hidden }: OptionRules): Option {
  const option = new Option(flags, about)
  if (choices !== undefined) option.choices(choices)
  if (fallback !== undefined) option.default(fallback)
  if (hidden === true) option.hideHelp()
  const read = (text: string): unknown => {
    try {
      return parse === undefined ? text : parse(text)
    } catch (error) {
      throw new CliError(1, `${option.long}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  if (repeated === true)
    option.argParser<unknown>((text, before) => [...(Array.isArray(before) ? (before as unknown[]) : []), read(text)])
  else if (parse !== undefined) option.argParser<unknown>(read)
  return option
}

function exampleLines(lines: readonly (readonly [string, string])[]): string {
  const width = Math.max(...lines.map(([line]) => line.length))
  return lines.map(([line, about]) => `  ${line.padEnd(width)}  ${about}`).join('\n')
}

/** `error: unknown option '--x'\n(Did you mean --y?)` → `Unknown option '--x'. Did you mean --y?` */
function misspelt({ message }: CommanderError): string {
  const [first = '', ...more] = message.replace(/^error: /, '').split('\n')
  const hint = more.map(line => line.replace(/^\((.*)\)$/, '$1')).join(' ')
  const sentence = `${first.charAt(0).toUpperCase()}${first.slice(1)}`.replace(/^Unknown command/, 'There is no verb')
  // What most programs call so, and here is one of two formats.
  if (hint === '' && first === "unknown option '--json'") return `${sentence}. Did you mean --format json?`
  return hint === '' ? sentence : `${sentence.replace(/\.$/, '')}. ${hint}`
}

async function noVerb(word: string): Promise<CliError> {
  // Loaded with much that a good command line does not need.
  const { nearest } = await import('../core/suggestion.ts')
  const near = nearest(
    word,
    verbs.map(({ name }) => name),
  )
  return new CliError(
    1,
    `There is no verb '${word.slice(0, 40)}'${near.length > 0 ? `. Did you mean ${near.join(' or ')}?` : ''}`,
    'vivarium --help',
  )
}

function helpLine(verb: string | undefined): string {
  return verbs.some(({ name }) => name === verb) ? `vivarium ${verb} --help` : 'vivarium --help'
}
