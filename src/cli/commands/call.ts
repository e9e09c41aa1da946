/** `vivarium call`: calls a tool with arguments as they are typed, and prints what came of it. */
import { type Client, suggestionText, type Tool, type ToolOutcome } from '../../client/index.ts'
import { durationText } from '../../core/clock.ts'
import { meantText, shellWord } from '../../core/suggestion.ts'
import type { ContentBlock } from '../../features/mcp/content/messages.ts'
import { confirmationExtension } from '../../features/reliability/confirmation/messages.ts'
import { needsApprovalId } from '../../features/reliability/confirmation/queue.ts'
import { dataReference } from '../../features/reliability/data-references/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { given } from '../../jsonrpc/message.ts'
import { givenArguments, missingArguments, signature } from '../arguments.ts'
import {
  type ConnectingOptions,
  connectingOptions,
  milliseconds,
  type OpenedTarget,
  targetAbout,
  withClient,
} from '../connecting.ts'
import { CliError, type Io } from '../io.ts'
import { gather } from '../lists.ts'
import { rememberOffers } from '../offers.ts'
import { blockText, createProgress, type Printer, printerOf, saveFile } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { askOptions, type QuestionOptions, ServerQuestions } from '../server-questions.ts'
import { splitTarget } from '../target.ts'
import { brief, listCommand } from '../terminal/text.ts'

/** The options of `vivarium call`. */
interface CallOptions extends ConnectingOptions, QuestionOptions {
  /** All arguments as one JSON object. */
  readonly json?: string
  /** The file in which the result is saved. */
  readonly output?: string
  /** The idempotency key. */
  readonly key?: string
  /** The most units that the call may cost. */
  readonly budget?: number
  /** The longest time that the server may take, in milliseconds. */
  readonly budgetTime?: number
  /** What the call is for, told to the server. */
  readonly intent?: string
  /** The id of an approval for this call. */
  readonly approvalId?: string
  /** Run it as a task, where the tool allows it. */
  readonly task?: boolean
}

/** `vivarium call`. */
export const call: Verb = (command, io) => {
  command
    .argument('[target]', targetAbout)
    .argument('[tool]', 'the name of the tool')
    .argument('[arguments...]', 'key=value, key:=JSON, @file.json, or - to read JSON from standard input')
    .option('--json <object>', 'Pass all arguments as one JSON object, including ones that the schema does not list')
    .option('--output <file>', 'Save the result to a file: image, audio, resource, referenced data or text')
    .option('--key <key>', 'Send an idempotency key: a repeated call with the same key runs once')
    .option('--budget <units>', 'Limit what the call may cost', { parse: count })
    .option('--budget-time <time>', 'Limit how long the server may take: 30s', { parse: milliseconds })
    .option('--intent <sentence>', 'Tell the server what the call is for')
    .option('--approval-id <id>', 'Repeat a call that an operator has approved: the id that the refused call named')
    .option('--task', 'Run the call as a task, if the tool supports it')
  connectingOptions(askOptions(command))
    .note(
      "Values are converted to the types of the tool's schema: numbers, true and false, lists (tags=a,b or tags=a tags=b) and objects (point.x=1, or JSON). key:=JSON is always JSON.",
    )
    .examples([
      ['vivarium call ./server.ts add a=2 b=3', 'Pass numbers: the schema says that a and b are numbers'],
      [`vivarium call https://example.com/mcp search --json '{"query": "tea"}'`, 'Pass the arguments as JSON'],
      ['echo \'{"path": "/tmp"}\' | vivarium call files list_directory -', 'Read the arguments from a pipe'],
      ['vivarium call ./server.ts chart --output chart.png', 'Save an image'],
      ['vivarium call add a=1 b=2 -- node server.js', 'Call a tool of a program, which goes last'],
    ])
    .action<CallOptions>(call => run(call, io))
}

/** A number of units, as it is typed. */
function count(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value
  throw new TypeError(`${clip(text)} is not a number of units. Write a number from 0 up`)
}

/** Opens the server, calls the tool, and adds to a failure what nobody answered. */
async function run(typed: VerbCall<CallOptions>, io: Io): Promise<number> {
  const asks = new ServerQuestions(io, typed.options)
  const { intent } = typed.options
  try {
    return await withClient(typed, io, opened => callOn(opened, typed, io, asks), {
      ...asks.options,
      ...(intent !== undefined && { intent: true }),
    })
  } catch (error) {
    throw withDeclined(error, asks.declined)
  } finally {
    asks.close()
  }
}

/** Reads the arguments by the schema of the tool, calls it, and prints the result. */
async function callOn(
  { client, again, rest: [name, ...words] }: OpenedTarget,
  typed: VerbCall<CallOptions>,
  io: Io,
  { declined, screen }: ServerQuestions,
): Promise<number> {
  if (name === undefined)
    throw new CliError('The name of the tool is missing', `Run ${listCommand(again, 'tools')} to see the tools`)
  const { options } = typed
  const printer = printerOf(io)
  const tools = await gather(client.tools())
  rememberOffers(splitTarget(typed).target, { tools }, io.env)
  const tool = toolNamed(tools, name)
  const args = await givenArguments(words, options.json, tool.inputSchema, name, io)
  const missing = missingArguments(tool.inputSchema, args)
  if (missing.length > 0)
    throw new CliError(
      `${clip(name)} requires the ${missing.length === 1 ? 'argument' : 'arguments'} ${missing.map(each => clip(each)).join(', ')}`,
      signature(clip(name), tool.inputSchema),
    )
  const progress = createProgress(io)
  // Until it says how far it is, if it ever does.
  const waited = screen.work(`${brief(name, 60)} runs`)
  const started = performance.now()
  try {
    const { key, intent, task, budget: units, budgetTime: time, approvalId } = options
    const outcome = await client.callTool(name, args, {
      signal: io.signal,
      onProgress: step => {
        waited()
        progress.show(step)
      },
      ...given({ idempotencyKey: key, intent, task }),
      ...(approvalId !== undefined && { meta: { [confirmationExtension]: { approval_id: approvalId } } }),
      ...((units !== undefined || time !== undefined) && { budget: given({ units, time }) }),
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
  const names = tools.map(each => each.name)
  const fix = meantText(name, names) ?? `Its tools are ${brief(names.join(', '), 300)}`
  throw new CliError(`The server has no tool ${clip(name)}`, tools.length === 0 ? 'It has no tools' : fix)
}

/** What printing a result needs beside it. */
interface ResultContext {
  readonly client: Client
  readonly name: string
  readonly options: CallOptions
  readonly printer: Printer
  /** What the server asked and nobody answered. */
  readonly declined: readonly string[]
  /** How long the call took. */
  readonly ms: number
}

/** Prints a result, what was declined, warnings and the cost. Throws where the tool reports an error. */
async function show(outcome: ToolOutcome, shown: ResultContext): Promise<number> {
  const { options, printer, declined, name, client, ms } = shown
  const { isError, content, structured, problem, cost, warnings, suggestion, meta } = outcome
  const { aside } = printer
  for (const sentence of declined) aside.warn(`Declined: ${sentence}`)
  for (const warning of warnings) aside.warn(brief(warning, 300))
  // Whose words they are stands before them: what a server suggests is no advice of this program.
  if (suggestion !== undefined) aside.warn(suggestionText(client.server?.name ?? 'The server', suggestion))
  if (!isError && options.output !== undefined) aside.note(`Saved ${await saveBlocks(options.output, content, client)}`)
  else if (options.format === 'json') printer.json({ isError, content, ...given({ structured, meta }) })
  else if (!isError) printResult(outcome, printer)
  if (isError) throw toolError(name, outcome)
  const facts = [durationText(ms), ...(cost === undefined ? [] : [`${cost.units} ${cost.unitLabel ?? 'units'}`])]
  if (problem === undefined && options.format !== 'json') aside.note(facts.join(' · '))
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

/** Whether a text is the JSON of the structured content. */
function isSame(text: string, structured: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(structured)
  } catch {
    return false
  }
}

/** The failure for a tool that reports an error. */
function toolError(name: string, { text, problem }: ToolOutcome): CliError {
  const said = problem === undefined ? text : problem.message
  return new CliError(
    `${clip(name)} failed: ${brief(said === '' ? 'the server does not say why' : said, 600)}`,
    approvalFix(problem) ?? problem?.suggestion,
    {
      exit: 5,
    },
  )
}

/** How a call that waits for an operator is made again with this command, by a caller that only the id of the approval makes known. */
function approvalFix(problem: ToolOutcome['problem']): string | undefined {
  const id = problem?.details?.['approval_id']
  if (problem?.code !== 'CONFIRMATION_REQUIRED' || typeof id !== 'string' || !needsApprovalId(id)) return undefined
  return `Repeat the command within 5 minutes after it has been approved, with --approval-id ${shellWord(clip(id, 200))}`
}

/** A call that was refused because nobody answered says so itself; what would have answered is told with it. */
function withDeclined(error: unknown, declined: readonly string[]): unknown {
  const [first] = declined
  if (!(error instanceof CliError) || first === undefined || error.exit === 5) return error
  const [what = '', fix] = first.split(' → ')
  return new CliError(`${error.message}. Declined: ${what}`, fix, { exit: error.exit, cause: error })
}

/** Saves what there is in one file: its bytes where it has some, what a reference stands for, else its text. Gives what was saved. */
async function saveBlocks(file: string, blocks: readonly ContentBlock[], client: Client): Promise<string> {
  const referring = blocks.find(block => dataReference(block) !== undefined)
  if (referring !== undefined) {
    const chunks: Uint8Array[] = []
    for await (const chunk of await client.readReference(referring)) chunks.push(chunk)
    return saveFile(file, Buffer.concat(chunks))
  }
  const binary = blocks.flatMap(block => (block.type === 'image' || block.type === 'audio' ? [block.data] : embedded(block)))
  const [first, ...others] = binary
  if (others.length > 0)
    throw new CliError(`The result contains ${binary.length} files, but --output saves only one`, 'Use --format json')
  if (first !== undefined) return saveFile(file, Buffer.from(first, 'base64'))
  return saveFile(file, blocks.map(block => (block.type === 'text' ? block.text : '')).join('\n'))
}

/** The bytes of an embedded resource. */
function embedded(block: ContentBlock): readonly string[] {
  return block.type === 'resource' && block.resource.blob !== undefined ? [block.resource.blob] : []
}
