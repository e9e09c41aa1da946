import { describe, expect, it } from 'vitest'
import { commandEnvironment } from './command.ts'

describe('commandEnvironment', () => {
  it('hands on what a command needs to run, and nothing else', () => {
    const ambient = {
      PATH: '/bin',
      HOME: '/home/me',
      LC_ALL: 'C',
      LANG: 'C',
      AWS_SECRET: 's',
      npm_token: 't',
      NODE_OPTIONS: '--x',
    }
    expect(commandEnvironment({}, ambient, 'linux')).toEqual({ PATH: '/bin', HOME: '/home/me', LC_ALL: 'C', LANG: 'C' })
  })

  it('knows the names of Windows in any case', () => {
    const ambient = { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', HOME: 'x', SECRET: 's' }
    expect(commandEnvironment({}, ambient, 'win32')).toEqual({ Path: 'C:\\bin', SystemRoot: 'C:\\Windows' })
  })

  it('adds what is given, over what is inherited', () => {
    expect(commandEnvironment({ PATH: '/mine', KEY: 'k' }, { PATH: '/bin' }, 'linux')).toEqual({ PATH: '/mine', KEY: 'k' })
  })

  it('leaves out functions that a shell exported', () => {
    expect(commandEnvironment({}, { TERM: '() { :; }; echo hi', LANG: 'C' }, 'linux')).toEqual({ LANG: 'C' })
  })
})
