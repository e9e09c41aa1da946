/** Conformance from the console: a real server is judged, results come one by one, and the report is the one of the command. */
import { describe, expect, it } from 'vitest'
import { playgroundWorld, shop } from '../../../test/console/playground-console.ts'
import { readReport } from '../../conformance/index.ts'
import type { Conformance, ConformanceResult } from '../contract/index.ts'

async function world() {
  const server = shop()
  const { page } = await playgroundWorld({ server, again: './shop.ts', judge: { acceptor: server.acceptor } })
  const me = await page()
  const now = async () => (await me.get('/conformance')).body as unknown as Conformance
  return { page, me, now, ended: () => expect.poll(async () => (await now()).state).not.toBe('running') }
}

describe('conformance', () => {
  it("is judged at the revisions and scenarios of one's choice, and read cell by cell and result by result", async () => {
    const { me, now, ended } = await world()
    expect(await now()).toMatchObject({ state: 'idle', carriers: ['memory'], cells: [], command: 'vivarium test ./shop.ts' })
    const wish = { revisions: ['2025-06-18', '2026-07-28'], only: 'base/tools, base/prompts' }
    const begun = await me.post('/conformance', wish)
    expect(begun).toMatchObject({ status: 202, body: { state: 'running', by: 'ann', wish } })
    await ended()
    const { state, cells, summary, planned, command } = await now()
    expect([state, cells.map(({ revision }) => revision)]).toEqual(['done', wish.revisions])
    expect(summary).toMatchObject({ failed: 0, error: 0 })
    expect(summary.passed + summary.skipped).toBe(planned)
    expect(command).toBe('vivarium test ./shop.ts --revision 2025-06-18 --revision 2026-07-28')
    const passed = (await me.get('/conformance/results?status=passed&revision=2026-07-28&limit=1000')).body
    expect((passed['items'] as ConformanceResult[]).length).toBe(cells[1]?.passed)
    const [first] = passed['items'] as ConformanceResult[]
    expect((await me.get(`/conformance/results/${first?.n}`)).body).toMatchObject({
      result: first,
      command: `vivarium test ./shop.ts --revision 2026-07-28 --carrier memory --only '^${first?.id}$'`,
    })
  })

  it('gives the report of the command, JUnit and a badge once it has ended', async () => {
    const { me, ended } = await world()
    expect((await me.get('/conformance/export')).status).toBe(404)
    await me.post('/conformance', { revisions: ['2025-06-18'], only: 'base/prompts' })
    await ended()
    const file = async (as: string): Promise<string> => String((await me.get(`/conformance/export?as=${as}`)).body['text'])
    expect(readReport(await file('json'))).toMatchObject({ server_name: 'shop', role: 'server', summary: { failed: 0 } })
    expect(await file('junit')).toContain('<testsuite')
    expect(JSON.parse(await file('badge'))).toMatchObject({ label: 'MCP conformance', isError: false })
  })

  it('is run once at a time, is stopped, and what is known by then stays', async () => {
    const { me, now, ended } = await world()
    // All of it takes seconds, so it is not over before it is stopped.
    await me.post('/conformance', {})
    expect(await me.post('/conformance', {})).toMatchObject({ status: 409, body: { code: 'JOB_RUNNING' } })
    expect((await me.remove('/conformance')).status).toBe(204)
    await ended()
    const { state, summary } = await now()
    expect(state).toBe('stopped')
    expect(summary.skipped).toBeGreaterThan(0)
  })

  it('is started by operators, and a wrong wish is refused by name', async () => {
    const { page, me } = await world()
    const eve = await page({ by: 'eve', roles: ['viewer'] })
    expect((await eve.post('/conformance', {})).status).toBe(403)
    expect((await eve.get('/conformance/export')).status).toBe(403)
    for (const [wish, member] of [
      [{ revisions: ['1999'] }, 'revisions'],
      [{ carriers: ['pigeon'] }, 'carriers'],
      [{ only: 'nothing is called like this' }, 'only'],
    ] as const)
      expect(await me.post('/conformance', wish)).toMatchObject({ status: 400, body: { details: { member } } })
  })

  it('is absent where the server can only be called', async () => {
    const me = await (await playgroundWorld()).page()
    expect((await me.get('/conformance')).status).toBe(404)
    expect((await me.get('/self')).body['screens']).not.toContain('conformance')
  })
})
