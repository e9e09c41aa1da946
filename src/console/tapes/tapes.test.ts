/** Tapes of a console: recorded, saved from what passed, replayed with differences, and served with faults. */
import { mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { signedIn } from '../../../test/console/gateway-console.ts'
import { playgroundWorld, shop } from '../../../test/console/playground-console.ts'
import { connect } from '../../client/index.ts'
import { openTape } from '../../recording/mock-server.ts'
import type { FrameRow } from '../contract/frames.ts'
import { serveConsole } from '../serve.ts'

function folder(): string {
  return mkdtempSync(join(tmpdir(), 'vivarium-tapes-'))
}

describe('tapes', () => {
  it('are recorded from now on, with how open connections were opened, and without secrets', async () => {
    const tapes = folder()
    const me = await (await playgroundWorld({ tapes })).page()
    await me.called({ tool: 'order', arguments: { item: 'before' }, revisions: ['2025-06-18'] })
    expect((await me.get('/self')).body).toMatchObject({ target: { folder: tapes } })
    expect(await me.post('/tapes', { name: 'mine' })).toMatchObject({ status: 202, body: { name: 'mine.tape', recording: true } })
    expect(await me.post('/tapes', {})).toMatchObject({ status: 409, body: { code: 'JOB_RUNNING' } })
    await me.called({ tool: 'order', arguments: { item: 'after', token: 'hunter2hunter2' }, revisions: ['2025-06-18'] })
    const stopped = await me.post('/tapes/mine.tape/stop')
    expect(stopped.body).toMatchObject({ recording: false, by: 'ann', connections: 1, frames: 5 })
    const text = readFileSync(join(tapes, 'mine.tape'), 'utf8')
    for (const hidden of ['before', 'hunter2hunter2']) expect(text).not.toContain(hidden)
    const [conversation] = (await openTape(join(tapes, 'mine.tape'))).conversations
    const methods = conversation?.frames.map(({ value }) => (value as { method?: string }).method)
    expect(methods).toEqual(['initialize', undefined, 'notifications/initialized', 'tools/call', undefined])
  })

  it('of what has passed are saved at once, never over an existing file', async () => {
    const tapes = folder()
    const me = await (await playgroundWorld({ tapes })).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' } })
    const saved = { past: true, stop: true }
    expect((await me.post('/tapes', saved)).body).toMatchObject({ name: 'shop-1.tape', recording: false })
    expect((await me.post('/tapes', saved)).body).toMatchObject({ name: 'shop-2.tape' })
    expect(await me.post('/tapes', { ...saved, name: 'shop-1' })).toMatchObject({
      status: 400,
      body: { details: { member: 'name' } },
    })
    expect(await me.post('/tapes', { ...saved, name: '../shop' })).toMatchObject({
      status: 400,
      body: { details: { member: 'name' } },
    })
    expect(readFileSync(join(tapes, 'shop-1.tape'), 'utf8')).toContain('bread')
  })

  it('are replayed against the server of now, and what it answers otherwise is listed', async () => {
    const tapes = folder()
    const server = shop()
    const me = await (await playgroundWorld({ tapes, server })).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' } })
    await me.post('/tapes', { name: 'then', past: true, stop: true })
    const replayed = async (ignore: readonly string[]) => {
      expect((await me.post('/tapes/then.tape/replay', { ignore })).status).toBe(202)
      await expect.poll(async () => (await me.get('/tapes/then.tape/replay')).body['state']).not.toBe('running')
      return (await me.get('/tapes/then.tape/replay')).body
    }
    expect((await me.get('/tapes/then.tape/replay')).status).toBe(204)
    expect(await replayed([])).toMatchObject({ state: 'done', found: 0, by: 'ann' })
    const other = await (await playgroundWorld({ tapes, server: shop(2) })).page()
    await other.post('/tapes/then.tape/replay', {})
    await expect.poll(async () => (await other.get('/tapes/then.tape/replay')).body['state']).toBe('done')
    const { body } = await other.get('/tapes/then.tape/replay')
    expect(body['differences']).toContainEqual(
      expect.objectContaining({ what: 'answer to tools/call', before: '1 bread', after: '2 bread' }),
    )
    const eve = await (await playgroundWorld({ tapes })).page({ roles: ['viewer'] })
    expect((await eve.post('/tapes/then.tape/replay')).status).toBe(403)
  })

  it('are served as a mock server with faults, until that is stopped', async () => {
    const me = await (await playgroundWorld({ tapes: folder() })).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' } })
    await me.post('/tapes', { name: 'then', past: true, stop: true })
    expect(await me.post('/tapes/then.tape/serve', { faults: ['explode'] })).toMatchObject({
      status: 400,
      body: { details: { member: 'faults' } },
    })
    const faults = ['error=-32099@tools/call']
    const { serving } = (await me.post('/tapes/then.tape/serve', { faults })).body as { serving: { url: string } }
    expect(new URL(serving.url).hostname).toBe('127.0.0.1')
    await using client = await connect(serving.url)
    await expect(client.callTool('order', { item: 'bread' })).rejects.toMatchObject({ code: -32099 })
    expect((await me.remove('/tapes/then.tape/serve')).status).toBe(204)
    await expect(fetch(serving.url)).rejects.toThrow()
  })

  it('lie in one folder: links and other names are not seen, and what is no tape says so', async () => {
    const tapes = folder()
    writeFileSync(join(tapes, 'other.txt'), 'x')
    writeFileSync(join(tapes, 'broken.tape'), 'x\n')
    symlinkSync('/etc/hostname', join(tapes, 'link.tape'))
    const me = await (await playgroundWorld({ tapes })).page()
    const { items } = (await me.get('/tapes')).body as { items: { name: string; why?: string }[] }
    expect(items.map(({ name }) => name)).toEqual(['broken.tape'])
    expect(items[0]?.why).toContain('JSON')
    for (const name of ['link.tape', '..%2Fother.txt', 'other.txt'])
      expect((await me.get(`/tapes/${name}`)).status, name).toBe(404)
    expect((await me.post('/tapes/broken.tape/replay')).status).toBe(400)
  })
})

describe('a tape without a server', () => {
  it('is shown like traffic, and nothing can be called or sent', async () => {
    const tapes = folder()
    const me = await (await playgroundWorld({ tapes })).page()
    await me.called({ tool: 'order', arguments: { item: 'bread' }, revisions: ['2025-06-18'] })
    await me.post('/tapes', { name: 'then', past: true, stop: true })
    const file = join(tapes, 'then.tape')
    const running = await serveConsole({ tape: { tape: await openTape(file), name: file }, port: 0 })
    onTestFinished(() => running.close())
    const reader = await signedIn(running, running.link)
    expect((await reader.get('/self')).body).toMatchObject({ kind: 'tape', screens: ['traffic', 'logs'], name: file })
    const { items } = (await reader.get('/frames?method=tools/call')).body as { items: FrameRow[] }
    expect(items).toMatchObject([
      { kind: 'result', about: '1 bread', of: items[1]?.n, server: 'then' },
      { kind: 'request', status: 'ok', answer: items[0]?.n },
    ])
    expect((await reader.get(`/frames/${items[1]?.n}`)).body).toMatchObject({
      text: expect.stringContaining('bread'),
      notAgain: expect.any(String),
    })
    expect((await reader.post(`/frames/${items[1]?.n}/again`)).status).toBe(404)
    expect((await reader.post('/calls', { tool: 'order' })).status).toBe(404)
    await expect(serveConsole({})).rejects.toThrow('exactly one of the options')
  })
})
