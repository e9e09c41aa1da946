import { expect, onTestFinished, test } from 'vitest'
import { startFixture } from '../transcripts/carriers.ts'
import { type NegotiationV2, openV1, openV2, type SdkCarrier, type SdkClient } from './sdk-clients.ts'

interface SdkCell {
  readonly name: string
  readonly carrier: SdkCarrier
  /** Undefined: the client of v1. */
  readonly mode?: NegotiationV2
  readonly wire: '2025-11-25' | '2026-07-28'
}

const cells: readonly SdkCell[] = [
  { name: 'SDK v1 client', carrier: 'stdio', wire: '2025-11-25' },
  { name: 'SDK v1 client', carrier: 'http', wire: '2025-11-25' },
  { name: 'SDK v1 client', carrier: 'sse', wire: '2025-11-25' },
  { name: 'SDK v1 client', carrier: 'websocket', wire: '2025-11-25' },
  { name: 'SDK v2 client (legacy)', carrier: 'stdio', mode: 'legacy', wire: '2025-11-25' },
  { name: 'SDK v2 client (legacy)', carrier: 'http', mode: 'legacy', wire: '2025-11-25' },
  { name: 'SDK v2 client (auto)', carrier: 'stdio', mode: 'auto', wire: '2026-07-28' },
  { name: 'SDK v2 client (auto)', carrier: 'http', mode: 'auto', wire: '2026-07-28' },
  { name: 'SDK v2 client (pinned)', carrier: 'stdio', mode: { pin: '2026-07-28' }, wire: '2026-07-28' },
  { name: 'SDK v2 client (pinned)', carrier: 'http', mode: { pin: '2026-07-28' }, wire: '2026-07-28' },
]

for (const { name, carrier, mode, wire } of cells) {
  test(`${name} ⇄ our server over ${carrier}`, async () => {
    const { target, close } = await startFixture(carrier)
    onTestFinished(close)
    const sdk = mode === undefined ? await openV1(carrier, target) : await openV2(carrier, target, mode)
    onTestFinished(() => sdk.client.close())
    expect(textOf(await sdk.call('wire'))).toBe(wire)
    await offers(sdk)
    await works(sdk, wire)
    await asks(sdk)
    await cancels(sdk)
    await runsTasks(sdk)
    await hears(sdk)
  })
}

function textOf(result: Readonly<Record<string, unknown>>): string {
  const [block] = result['content'] as { type: string; text: string }[]
  return block?.text ?? ''
}

/** list · call · structured · failures · resource · template · prompt · completion */
async function offers({ client, call }: SdkClient): Promise<void> {
  const names: string[] = []
  for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
    const { tools, nextCursor } = await client.listTools(cursor === undefined ? undefined : { cursor })
    for (const tool of tools) names.push(tool.name)
    cursor = nextCursor
  }
  expect(new Set(names).size).toBe(20)
  expect((await call('greet', { name: 'Ada' }))['structuredContent']).toEqual({ greeting: 'Hello, Ada' })
  expect((await call('media'))['content']).toHaveLength(5)
  expect(await call('fail', { how: 'result' })).toMatchObject({ isError: true })
  expect(await call('greet', {})).toMatchObject({ isError: true })
  await expect(call('nobody')).rejects.toMatchObject({ code: -32602 })
  expect(await client.readResource({ uri: 'memo://today' })).toMatchObject({ contents: [{ text: 'Feed the fish' }] })
  expect(await client.readResource({ uri: 'memo://monday/morning' })).toMatchObject({
    contents: [{ text: 'Rest in the morning of monday' }],
  })
  await expect(client.readResource({ uri: 'memo://nothing' })).rejects.toThrow()
  expect(await client.getPrompt({ name: 'brief', arguments: { topic: 'whales' } })).toMatchObject({
    messages: [{ role: 'user' }, {}, {}],
  })
  const asked = { ref: { type: 'ref/prompt' as const, name: 'brief' }, argument: { name: 'topic', value: 'wh' } }
  expect((await client.complete(asked)).completion.values).toEqual(['whales'])
}

/** progress · log · ping */
async function works({ client, call, logs }: SdkClient, wire: string): Promise<void> {
  if (wire === '2025-11-25') {
    await client.setLoggingLevel('warning')
    await client.ping()
  }
  const steps: number[] = []
  expect(
    textOf(await call('work', { slowly: true }, { log: 'warning', onprogress: ({ progress }) => void steps.push(progress) })),
  ).toBe('Done')
  expect(steps).toEqual([1, 3, 3.5])
  expect(logs).toEqual([{ fish: 'small' }])
}

/** elicitation, a form and a page · sampling · roots · several at once */
async function asks({ call }: SdkClient): Promise<void> {
  expect(textOf(await call('order'))).toBe('2 cod')
  expect(textOf(await call('pay'))).toBe('Payment: accept')
  expect(textOf(await call('rhyme'))).toBe('The model says dish')
  expect(textOf(await call('where'))).toBe('home')
  expect(textOf(await call('plan'))).toBe('cod from 1 folder(s), sure, at dawn')
}

async function cancels({ call }: SdkClient): Promise<void> {
  const abort = new AbortController()
  await expect(call('wait', {}, { signal: abort.signal, onprogress: () => abort.abort() })).rejects.toThrow()
  expect(textOf(await call('stopped', { atLeast: 1 }))).toBe('1')
}

async function runsTasks({ call, task }: SdkClient): Promise<void> {
  const steps = await task?.('brew', () => void call('pour'))
  if (steps !== undefined) expect(steps).toEqual(['taskCreated', '[{"type":"text","text":"Coffee"}]'])
}

/** Nobody tells when the stream is open: the change is made again until it is heard. */
async function hears({ call, changed, listen }: SdkClient): Promise<void> {
  await listen()
  let done = false
  const heard = changed.then(() => {
    done = true
  })
  for (let tries = 0; tries < 200 && !done; tries++) {
    await call('change', { what: 'tools' })
    await Promise.race([heard, new Promise(resolve => setTimeout(resolve, 10))])
  }
  expect(done).toBe(true)
}
