/** `vivarium call`: calls a tool with arguments as they are typed, and prints what came of it. */
import { type Client, suggestionText, type Tool, type ToolOutcome } from '../../client/index.ts'
import { durationText } from '../../core/clock.ts'
import { nearest } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { givenArguments, missingArguments, readArguments } from '../arguments.ts'
import { rememberOffers } from '../completing/offer-cache.ts'
import { type ConnectingOptions, connectingOptions, milliseconds, type OpenedTarget, withClient } from '../connecting.ts'
import { blockText, saveBlocks } from '../content.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { gather } from '../lists.ts'
import { createProgress, type Printer, printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { type Asks, askOptions, createAsks, type QuestionOptions } from '../server-questions.ts'
import { listCommand } from '../shell-words.ts'
import { signature } from '../signature.ts'
import { splitTarget } from '../target.ts'
import { brief } from '../terminal/text.ts'

interface CallOptions extends ConnectingOptions, QuestionOptions {
  readonly json?: string
  readonly output?: string
  readonly key?: string
  readonly budget?: number
  readonly budgetTime?: number
  readonly intent?: string
  readonly task?: boolean
}

export const call: Verb = {
  name: 'call',
  summary: 'Call a tool: vivarium call TARGET TOOL key=value …',
  declare(command, io) {
    command
      .argument('[target]', 'the server')
      .argument('[tool]', 'the tool')
      .argument('[words...]', 'key=value, key:=JSON, @file.json, or - for JSON on standard input')
      .option('--json <object>', 'All arguments as JSON')
      .option('--output <file>', 'Save the result: its bytes, what it refers to, or its text')
      .option('--key <key>', 'Idempotency key: made again under the same one it is not done twice')
      .option('--budget <units>', 'The most that it may cost', { parse: count })
      .option('--budget-time <time>', 'The longest that the server may take: 30s', { parse: milliseconds })
      .option('--intent <sentence>', 'What it is for, told to the server')
      .option('--task', 'As a task, where the tool may run as one')
    connectingOptions(askOptions(command))
      .note(
        'Values become what the schema of the tool says: numbers, true and false, lists by commas or by repeating the key, objects by\ndots (point.x=1) or as JSON. key:=JSON is JSON whatever the schema says.\n--json sends what the schema does not list, too.',
      )
      .examples([
        ['vivarium call ./server.ts add a=2 b=3', 'numbers, because the schema says so'],
        [`vivarium call https://example.com/mcp search --json '{"query": "tea"}'`, 'exact arguments'],
        ['echo \'{"path": "/tmp"}\' | vivarium call files list_directory -', 'arguments from a pipe'],
        ['vivarium call ./server.ts chart --output chart.png', 'save an image'],
        ['vivarium call add a=1 b=2 -- node server.js', 'a program stands last'],
      ])
      .action<CallOptions>(given => run(given, io))
  },
}

function count(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value
  throw new TypeError(`${clip(text)} is no number of units`)
}

async function run(given: VerbCall<CallOptions>, io: Io): Promise<number> {
  const asks = createAsks(io, given.options)
  const { intent } = given.options
  try {
    return await withClient(given, io, opened => callOn(opened, given, io, asks), {
      ...asks.options,
      ...(intent !== undefined && { intent: true }),
    })
  } catch (error) {
    throw withDeclined(error, asks.declined)
  } finally {
    asks.close()
  }
}

async function callOn(
  { client, again, rest: [name, ...words] }: OpenedTarget,
  given: VerbCall<CallOptions>,
  io: Io,
  { declined, screen }: Asks,
): Promise<number> {
  if (name === undefined) throw new CliError(1, 'No tool is named', `${listCommand(again, 'tools')} shows them`)
  const { options } = given
  const printer = printerOf(io)
  const tools = await gather(client.tools())
  rememberOffers(splitTarget(given).target, { tools }, io.env)
  const tool = toolNamed(tools, name)
  const args = await givenArguments(words, options.json, io, (pairs, known) =>
    readArguments(pairs, tool.inputSchema, known, name),
  )
  const missing = missingArguments(tool.inputSchema, args)
  if (missing.length > 0)
    throw new CliError(
      1,
      `${clip(name)} needs ${missing.map(each => clip(each)).join(', ')}`,
      signature(clip(name), tool.inputSchema),
    )
  const progress = createProgress(io)
  // Until it says how far it is, if it ever does.
  const waited = screen.work(`${brief(name, 60)} runs`)
  const started = performance.now()
  try {
    const { key, intent, task, budget: units, budgetTime: time } = options
    const outcome = await client.callTool(name, args, {
      signal: io.signal,
      onProgress: step => {
        waited()
        progress.show(step)
      },
      ...(key !== undefined && { idempotencyKey: key }),
      ...(intent !== undefined && { intent }),
      ...(task !== undefined && { task }),
      ...((units !== undefined || time !== undefined) && {
        budget: { ...(units !== undefined && { units }), ...(time !== undefined && { time }) },
      }),
    })
    waited()
    progress.end()
    return await show(outcome, { client, name, options, printer, declined, ms: performance.now() - started })
  } finally {
    waited()
    progress.end()
  }
}

/** The tool as the server lists it; a name that is none is answered with those that are nearest. */
function toolNamed(tools: readonly Tool[], name: string): Tool {
  const tool = tools.find(each => each.name === name)
  if (tool !== undefined) return tool
  const near = nearest(
    name,
    tools.map(each => each.name),
  )
  const fix =
    near.length > 0
      ? `Did you mean ${near.map(each => clip(each)).join(' or ')}?`
      : `It has ${brief(tools.map(each => each.name).join(', '), 300)}`
  throw new CliError(1, `The server has no tool ${clip(name)}`, tools.length === 0 ? 'It has none at all' : fix)
}

interface Shown {
  readonly client: Client
  readonly name: string
  readonly options: CallOptions
  readonly printer: Printer
  readonly declined: readonly string[]
  readonly ms: number
}

async function show(outcome: ToolOutcome, shown: Shown): Promise<number> {
  const { options, printer, declined, name, client, ms } = shown
  const { isError, content, structured, problem, cost, warnings, suggestion, meta } = outcome
  const { aside } = printer
  for (const sentence of declined) aside.line(aside.paint.warn(`Declined: ${sentence}`))
  for (const warning of warnings) aside.line(aside.paint.warn(brief(warning, 300)))
  // Whose words they are stands before them: what a server suggests is no advice of this program.
  if (suggestion !== undefined) aside.line(aside.paint.warn(suggestionText(client.server?.name ?? 'The server', suggestion)))
  if (!isError && options.output !== undefined)
    aside.line(aside.paint.dim(`Saved ${await saveBlocks(options.output, content, client)}`))
  else if (options.format === 'json')
    printer.json({ isError, content, ...(structured !== undefined && { structured }), ...(meta !== undefined && { meta }) })
  else if (!isError) printResult(outcome, printer)
  if (isError) throw toolError(name, outcome)
  const facts = [durationText(ms), ...(cost === undefined ? [] : [`${cost.units} ${cost.unitLabel ?? 'units'}`])]
  if (problem === undefined && options.format !== 'json') aside.line(aside.paint.dim(facts.join(' · ')))
  return 0
}

/** A text that is the JSON of the structured content says nothing more than that does. */
function printResult({ content, structured, text }: ToolOutcome, printer: Printer): void {
  if (structured !== undefined && (content.length === 0 || isSame(text, structured))) {
    printer.line(printer.foreign(JSON.stringify(structured, null, 2)))
    return
  }
  for (const block of content) printer.line(blockText(block, printer))
  if (structured !== undefined) printer.line(printer.foreign(JSON.stringify(structured, null, 2)))
}

function isSame(text: string, structured: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(structured)
  } catch {
    return false
  }
}

function toolError(name: string, { text, problem }: ToolOutcome): CliError {
  const said = problem === undefined ? text : problem.message
  return new CliError(5, `${clip(name)} failed: ${brief(said === '' ? 'it does not say why' : said, 600)}`, problem?.suggestion)
}

/** A call that was refused because nobody answered says so itself; what would have answered is told with it. */
function withDeclined(error: unknown, declined: readonly string[]): unknown {
  const [first] = declined
  if (!(error instanceof CliError) || first === undefined || error.exit === 5) return error
  const [what = '', fix] = first.split(' → ')
  return new CliError(error.exit, `${error.message}. Declined: ${what}`, fix, { cause: error })
}
