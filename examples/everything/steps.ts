/**
 * Does what a play of `vivarium test --client` asks for: the steps in their order, with the answers that it names. At the end it
 * says what came of each step by calling the tool `test-report`, where the play wants that.
 */
import { type Client, type ConnectOptions, connect, type RevisionId, type Target } from 'vivarium/client'
import type { ClientAnswers, ClientStep, StepReport } from 'vivarium/conformance'
import { signInBy } from './sign-in.ts'

export interface Context {
  readonly steps: readonly ClientStep[]
  readonly answers?: ClientAnswers
  readonly report?: boolean
}

type Done = Omit<StepReport, 'as' | 'ok'>
type StepOf<K extends ClientStep['do']> = Extract<ClientStep, { do: K }>

interface Playing {
  readonly mcp: Client
  readonly signal: AbortSignal | undefined
  readonly reports: StepReport[]
  /** Tools about which the user was told. */
  readonly problems: Set<string>
  roots: readonly { uri: string; name?: string }[]
}

export async function playSteps(
  target: Target,
  version: string | undefined,
  { steps, answers = {}, report = false }: Context,
  signal?: AbortSignal,
  more: ConnectOptions = {},
): Promise<void> {
  const playing = { reports: [], problems: new Set<string>(), signal, roots: answers.roots ?? [] } as unknown as Playing
  const revisions = version === undefined ? {} : { revisions: [version.toLowerCase() as RevisionId] }
  const stop = signal === undefined ? {} : { signal }
  await using mcp = await connect(target, { ...optionsFor(answers, playing), ...revisions, ...stop, ...more })
  Object.assign(playing, { mcp })
  for (const step of steps) await play(step, playing)
  if (report) await mcp.callTool('test-report', { steps: playing.reports })
}

/** What this client offers to answer. */
export function optionsFor(answers: ClientAnswers, playing: Pick<Playing, 'problems' | 'roots'>): ConnectOptions {
  const { elicit, sample, sampleTools, roots, confirm, cost, suggestion, intent, authorize, retries, signIn } = answers
  return {
    ...(elicit === undefined ? {} : { onElicit: ({ mode }) => (mode === 'form' ? elicit : { action: elicit.action }) as never }),
    ...(sample === undefined ? {} : { onSample: () => saying(sample), sampleTools: sampleTools === true }),
    ...(roots === undefined ? {} : { roots: () => playing.roots }),
    ...(confirm === undefined ? {} : { onConfirm: () => confirm }),
    ...(cost === undefined ? {} : { onCost: () => cost }),
    ...(suggestion === undefined ? {} : { onSuggestion: () => suggestion }),
    ...(intent === undefined ? {} : { intent }),
    ...(authorize === undefined ? {} : { onAuthRequired: () => authorize }),
    ...(retries === undefined ? {} : { retry: { attempts: retries } }),
    ...(signIn === undefined ? {} : { auth: signInBy(signIn) }),
    onProblem: (_, { tool }) => void playing.problems.add(tool),
  }
}

function saying(text: string) {
  return { role: 'assistant', content: { type: 'text', text }, model: 'everything-client', stopReason: 'endTurn' } as const
}

/** One step; that it fails is told in the report, and is nobody else's matter. */
async function play(step: ClientStep, playing: Playing): Promise<void> {
  if (step.do === 'together') {
    await Promise.all(step.steps.map(one => play(one, playing)))
    return
  }
  const as = step.as ?? step.do
  try {
    playing.reports.push({ as, ok: true, ...(await act(step, playing)) })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const code = (error as { code?: unknown }).code
    playing.reports.push({ as, ok: false, message, ...(typeof code === 'number' ? { code } : {}), ...told(step, playing) })
  }
}

function told(step: ClientStep, { problems }: Playing): Done {
  return step.do === 'call' ? { problem: problems.has(step.tool) } : {}
}

function act(step: ClientStep, playing: Playing): Promise<Done> {
  const { mcp } = playing
  switch (step.do) {
    case 'list':
      return list(step.what, mcp)
    case 'call':
      return call(step, playing)
    case 'read':
      return mcp.readResource(step.uri).then(({ contents: [first] }) => ({ text: textIn(first) }))
    case 'prompt':
      return mcp.getPrompt(step.name, step.arguments).then(({ messages: [first] }) => ({ text: textIn(first?.content) }))
    case 'complete':
      return mcp
        .complete({ prompt: step.prompt }, { name: step.argument, value: step.value })
        .then(({ values }) => ({ count: values.length }))
    case 'watch':
      return watch(step.what, mcp)
    case 'watch-resource':
      return watchResource(step.uri, mcp)
    case 'roots':
      playing.roots = step.roots as Playing['roots']
      mcp.rootsChanged()
      return Promise.resolve({})
    case 'events':
      return events(step, playing)
    case 'manifest':
      return mcp.manifest().then(({ tools }) => ({ count: tools.length }))
    case 'recommend':
      return mcp.recommend(step.capability).then(found => ({ count: found.length }))
    case 'reference':
      return reference(step, mcp)
    case 'transaction':
      return transaction(step, mcp)
    default:
      return Promise.reject(new Error(`This client does not know how to ${step.do}`))
  }
}

async function list(what: StepOf<'list'>['what'], mcp: Client): Promise<Done> {
  const all = { tools: mcp.tools(), resources: mcp.resources(), templates: mcp.resourceTemplates(), prompts: mcp.prompts() }
  let count = 0
  for await (const _ of all[what]) count++
  return { count }
}

async function call(step: StepOf<'call'>, playing: Playing): Promise<Done> {
  const { mcp, problems } = playing
  const giveUp = new AbortController()
  let progress = 0
  const late = step.cancel === undefined ? undefined : setTimeout(() => giveUp.abort(), step.cancel)
  const onProgress = () => {
    progress++
    if (step.cancel !== undefined) giveUp.abort()
  }
  const options = {
    ...(step.progress === true ? { onProgress } : {}),
    ...(step.cancel === undefined ? {} : { signal: giveUp.signal }),
    ...(step.task === true ? { task: true } : {}),
    ...(step.timeout === undefined ? {} : { timeout: step.timeout }),
    ...(step.budget === undefined ? {} : { budget: step.budget }),
    ...(step.intent === undefined ? {} : { intent: step.intent }),
    ...(step.conversation === undefined ? {} : { conversation: step.conversation }),
  }
  try {
    if (step.stream === true) return await streamed(step, mcp)
    const outcome = await mcp.callTool(step.tool, step.arguments, options)
    const heard = step.progress === true ? { progress } : {}
    return { text: outcome.text, isError: outcome.isError, ...heard, problem: problems.has(step.tool) }
  } finally {
    clearTimeout(late)
  }
}

async function streamed({ tool, arguments: args }: StepOf<'call'>, mcp: Client): Promise<Done> {
  const stream = mcp.streamTool(tool, args)
  const chunks: unknown[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const { text, isError } = await stream.result
  return { text, isError, count: chunks.length }
}

async function watch(what: StepOf<'watch'>['what'], mcp: Client): Promise<Done> {
  for await (const _ of mcp.changes(what, { signal: AbortSignal.timeout(4_000) })) return list(what, mcp)
  throw new Error('No change was announced')
}

async function watchResource(uri: string, mcp: Client): Promise<Done> {
  for await (const _ of mcp.resourceUpdates(uri, { signal: AbortSignal.timeout(4_000) })) {
    const { contents } = await mcp.readResource(uri)
    return { text: textIn(contents[0]) }
  }
  throw new Error('No update was announced')
}

async function events({ names, count }: StepOf<'events'>, { mcp }: Playing): Promise<Done> {
  const seen: string[] = []
  let truncated = false
  for await (const event of mcp.events(names, { signal: AbortSignal.timeout(5_000) })) {
    truncated ||= event.truncated === true
    seen.push(JSON.stringify(event.payload))
    if (seen.length === count) break
  }
  return { count: seen.length, text: seen.join(' '), ...(truncated ? { message: 'truncated' } : {}) }
}

async function reference({ tool }: StepOf<'reference'>, mcp: Client): Promise<Done> {
  const { content } = await mcp.callTool(tool, {})
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of await mcp.readReference(content[0])) text += decoder.decode(chunk, { stream: true })
  return { text }
}

async function transaction({ calls }: StepOf<'transaction'>, mcp: Client): Promise<Done> {
  await using tx = await mcp.transaction()
  for (const { tool, arguments: args } of calls) {
    const { isError, text } = await tx.callTool(tool, args)
    if (isError) throw new Error(text)
  }
  const { status } = await tx.commit()
  return { text: status }
}

function textIn(value: unknown): string {
  const text = (value as { text?: unknown } | undefined)?.text
  return typeof text === 'string' ? text : ''
}
