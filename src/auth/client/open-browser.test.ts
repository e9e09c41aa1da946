import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commandFor, openBrowser } from './loopback.ts'

const hostile = new URL('https://as.example/$(touch%20a)?x=`id`&y=;rm -rf"|&--upload-pack=x')

describe('the system’s browser', () => {
  it.each<[NodeJS.Platform, string]>([
    ['darwin', 'open'],
    ['linux', 'xdg-open'],
    ['win32', 'rundll32'],
  ])('on %s gets the address as one argument of %s, without a shell', (platform, command) => {
    const [program, args] = commandFor(hostile, platform)
    expect(program).toBe(command)
    expect(args.at(-1)).toBe(hostile.href)
    expect(args.at(-1)).not.toMatch(/^-|\s|"/)
  })

  it.each(['javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x', 'mailto:a@b', 'x-evil:y'])(
    'is not given %s',
    address => {
      expect(() => commandFor(new URL(address), 'linux')).toThrow('Only http and https')
    },
  )

  it.skipIf(process.platform === 'win32')('is started with exactly that, and nothing in it is run', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'browser-'))
    const path = process.env['PATH']
    onTestFinished(async () => {
      process.env['PATH'] = path
      await rm(folder, { recursive: true })
    })
    const program = join(folder, 'xdg-open')
    await writeFile(program, `#!/bin/sh\nprintf '%s\\n' "$#" "$1" > "${folder}/draft" && mv "${folder}/draft" "${folder}/args"\n`)
    await chmod(program, 0o755)
    process.env['PATH'] = `${folder}:${path}`
    await openBrowser(hostile, 'linux')
    const args = (): Promise<string> => readFile(join(folder, 'args'), 'utf8').catch(() => '')
    await expect.poll(args).toBe(`1\n${hostile.href}\n`)
  })

  it('that is not there is an error with its name', async () => {
    const path = process.env['PATH']
    onTestFinished(() => {
      process.env['PATH'] = path
    })
    process.env['PATH'] = '/nowhere'
    await expect(openBrowser(hostile, 'linux')).rejects.toThrow('xdg-open')
  })
})
