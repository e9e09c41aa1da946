import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type CliOptions, cli } from './browser.ts'

const never = new AbortController().signal

/** What a browser does here: it goes where it is sent. */
async function visit(url: string): Promise<{ status: number; text: string; headers: Headers }> {
  const response = await fetch(url)
  return { status: response.status, text: await response.text(), headers: response.headers }
}

async function shown(options: CliOptions = {}) {
  const opened: URL[] = []
  const browser = cli({ open: url => void opened.push(url), ...options })
  const redirectUri = typeof browser.redirectUri === 'string' ? browser.redirectUri : await browser.redirectUri()
  const back = browser.authorize(new URL('https://as.example/authorize?state=s1'), { signal: never })
  back.catch(() => undefined)
  await expect.poll(() => opened.length).toBe(1)
  return { browser, redirectUri, back, opened }
}

describe('the callback of cli()', () => {
  it('listens on this machine alone, at a free port, and gives what the user came back with', async () => {
    const { redirectUri, back } = await shown()
    expect(redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
    const page = await visit(`${redirectUri}?code=c1&state=s1&iss=https%3A%2F%2Fas.example`)
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining('You can close this window') })
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(Object.fromEntries((await back) as URLSearchParams)).toEqual({ code: 'c1', state: 's1', iss: 'https://as.example' })
  })

  it('takes no answer that is not waited for, and goes on waiting', async () => {
    const { redirectUri, back } = await shown()
    for (const query of ['', '?code=x', '?code=x&state=forged', '?code=x&state=s1&state=s1'])
      expect((await visit(redirectUri + query)).status).toBe(400)
    expect((await visit(redirectUri.replace('callback', 'other?code=x&state=s1'))).status).toBe(404)
    expect((await fetch(`${redirectUri}?code=x&state=s1`, { method: 'POST' })).status).toBe(404)
    await visit(`${redirectUri}?code=right&state=s1`)
    expect(((await back) as URLSearchParams).get('code')).toBe('right')
  })

  it('takes an answer once, while another is still waited for', async () => {
    const { browser, redirectUri, back } = await shown()
    const other = browser.authorize(new URL('https://as.example/authorize?state=s2'), { signal: never })
    await visit(`${redirectUri}?code=c1&state=s1`)
    await back
    expect((await visit(`${redirectUri}?code=stolen&state=s1`)).status).toBe(400)
    await visit(`${redirectUri}?code=c2&state=s2`)
    expect(((await other) as URLSearchParams).get('code')).toBe('c2')
  })

  it('is gone when everybody is back', async () => {
    const { redirectUri, back } = await shown()
    await visit(`${redirectUri}?code=c1&state=s1`)
    await back
    await expect
      .poll(() =>
        fetch(redirectUri).then(
          () => 'open',
          () => 'gone',
        ),
      )
      .toBe('gone')
  })

  it('repeats nothing of what it was sent', async () => {
    const { redirectUri, back } = await shown()
    const { text } = await visit(`${redirectUri}?error=%3Cscript%3Ealert(1)%3C/script%3E&state=s1`)
    expect(text).not.toContain('alert')
    expect(text).toContain('refused')
    await back
  })

  it('does not wait for ever, nor for nobody', async () => {
    const { back } = await shown({ timeout: '30ms' })
    await expect(back).rejects.toThrow('30 ms')
    const stop = new AbortController()
    const browser = cli({ open: () => stop.abort(new Error('enough')) })
    await expect(browser.authorize(new URL('https://as.example/?state=s'), { signal: stop.signal })).rejects.toThrow('enough')
  })

  it('says so when its port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const { redirectUri } = cli({ port })
    await expect(typeof redirectUri === 'string' ? redirectUri : redirectUri()).rejects.toThrow('EADDRINUSE')
    await new Promise(resolve => taken.close(resolve))
  })
})
