/** What every runtime must serve, whatever it is: each revision, with sessions and without, streams, questions, tasks. */
import { expect, it, onTestFinished } from 'vitest'
import { type Client, type ConnectOptions, connect } from '../../src/client/index.ts'
import type { RevisionId } from '../../src/revisions/index.ts'

export interface Place {
  /** Where the server is, known once it runs. */
  url(): string
  /** How requests get there. */
  readonly fetch?: typeof fetch
  /** Requests meet in one place, so that an answer finds the call that asked, and work outlives the request that began it. */
  readonly meets: boolean
}

const revisions: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

export function servesEveryRevision({ url, fetch: reach = fetch, meets }: Place): void {
  for (const revision of revisions) {
    const stateless = revision === '2026-07-28'

    /** A real client of this revision, and what the answers it got said of themselves. */
    async function client(more: ConnectOptions = {}): Promise<{ mcp: Client; sessions: Set<string | null>; types: Set<string> }> {
      const sessions = new Set<string | null>()
      const types = new Set<string>()
      const watched: typeof fetch = async (address, init) => {
        const response = await reach(address, init)
        const type = response.headers.get('content-type')
        if (init?.method === 'POST' && type !== null) types.add(type)
        if (response.ok) sessions.add(response.headers.get('mcp-session-id'))
        return response
      }
      const mcp = await connect(url(), { revisions: [revision], fetch: watched, ...more })
      onTestFinished(() => mcp.close())
      return { mcp, sessions, types }
    }

    it(`${revision}: a tool is listed and called, and wrong arguments are refused in words`, async () => {
      const { mcp, sessions } = await client()
      const names: string[] = []
      for await (const { name } of mcp.tools()) names.push(name)
      expect(names.toSorted()).toEqual(['count', 'greet', 'report', 'wipe'])
      expect((await mcp.callTool('greet', { name: 'Ada' })).text).toBe('Hello, Ada')
      const refusal = await mcp.callTool('greet', { name: '' }).then(
        ({ text }) => text,
        (error: Error) => error.message,
      )
      expect(refusal).toMatch(/Invalid arguments for tool greet: name/)
      expect([...sessions].some(session => session !== null)).toBe(!stateless)
    })

    it(`${revision}: progress comes on an event stream, before the answer`, async () => {
      const { mcp, types } = await client()
      const heard: number[] = []
      const { text } = await mcp.callTool('count', {}, { onProgress: ({ progress }) => heard.push(progress) })
      expect([...heard, text]).toEqual([1, 2, 3, 'three'])
      expect([...types]).toContain('text/event-stream')
    })

    if (revision !== '2025-03-26' && (meets || stateless))
      it(`${revision}: a handler asks the user twice and goes on with what it was told`, async () => {
        const asked: string[] = []
        const { mcp } = await client({
          onElicit: ({ message }) => {
            asked.push(message)
            return { action: 'accept', content: message === 'Why?' ? { reason: 'spring' } : { confirm: true } }
          },
        })
        expect((await mcp.callTool('wipe')).text).toBe('Wiped: spring')
        expect(asked).toEqual(['Wipe everything?', 'Why?'])
      })

    if (meets && (revision === '2025-11-25' || stateless))
      it(`${revision}: a call becomes a task, and its result is fetched later`, async () => {
        const { mcp } = await client()
        expect((await mcp.callTool('report', {}, { task: true })).text).toBe('written as a task')
      })
  }
}
