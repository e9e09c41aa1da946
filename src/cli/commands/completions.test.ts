/** Completions in the real shells, each where it is installed; and the words that they are given. */
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { type Trial, trial } from '../../../test/cli/trial.ts'

const bin = join(import.meta.dirname, '../../../bin/vivarium.mjs')
const run = promisify(execFile)

/** A folder with a server, a config that names others, and the command on the PATH. */
async function place(): Promise<Trial & { readonly env: Readonly<Record<string, string>> }> {
  const it = await trial()
  const servers = { notes: { command: 'node', args: ['x'] }, 'bad$(touch x)': { command: 'node' } }
  it.write('.mcp.json', JSON.stringify({ mcpServers: { ...servers, both: { command: 'a' } } }))
  it.write('.cursor/mcp.json', JSON.stringify({ mcpServers: { both: { command: 'b' } } }))
  const file = it.write('bin/vivarium', `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`)
  chmodSync(file, 0o755)
  const path = [join(it.folder, 'bin'), join(process.execPath, '..'), process.env['PATH'] ?? ''].join(delimiter)
  return { ...it, env: { PATH: path, HOME: it.folder, TERM: 'dumb', SHELL: '/bin/sh' } }
}

async function proposed({ run }: Trial, ...typed: readonly string[]): Promise<readonly string[]> {
  const { code, out, err } = await run(['completions', 'words', '--', ...typed])
  expect([code, err]).toEqual([0, ''])
  return out.split('\n').slice(0, -1)
}

const words = (lines: readonly string[]): readonly string[] => lines.map(line => line.split('\t')[0] ?? '')

describe('the words', () => {
  test('verbs, options, their values, and names of configs that no shell would obey', async () => {
    const it = await place()
    expect(await proposed(it, 'ca')).toEqual(['call\tCall a tool'])
    expect(words(await proposed(it, 'he'))).toEqual(['help'])
    expect(words(await proposed(it, 'list', '--re'))).toEqual(['--revision'])
    expect(words(await proposed(it, 'list', '--revision', '2026'))).toEqual(['2026-07-28'])
    expect(words(await proposed(it, 'list', 'notes', '--format=j'))).toEqual(['--format=json'])
    expect(words(await proposed(it, 'list', ''))).toEqual(['cursor:both', 'notes', 'project:both', '@files'])
    expect(words(await proposed(it, 'list', 'notes', 't'))).toEqual(['tools', 'templates'])
    expect(words(await proposed(it, 'serve', ''))).toEqual(['@files'])
    expect(await proposed(it, 'nonsense', '')).toEqual([])
  })

  test('of a program its tools, their arguments and values once it was listed: a key starts nothing', async () => {
    const it = await place()
    expect(await proposed(it, 'call', 'server.ts', 'a')).toEqual([])
    expect((await it.run(['list', 'server.ts'])).code).toBe(0)
    expect(words(await proposed(it, 'call', 'server.ts', 'a'))).toEqual(['add'])
    expect(words(await proposed(it, 'call', 'server.ts', 'add', ''))).toEqual(['a=', 'b='])
    expect(words(await proposed(it, 'call', 'server.ts', 'add', 'a=1', ''))).toEqual(['b='])
    expect(words(await proposed(it, 'read', 'server.ts', ''))).toEqual(['note://today'])
    expect(words(await proposed(it, 'prompt', 'server.ts', 'sum', ''))).toEqual(['style='])
    it.write(
      '.mcp.json',
      JSON.stringify({ mcpServers: { mine: { command: 'node', args: [bin, 'serve', 'server.ts', '--stdio'] } } }),
    )
    expect(await proposed(it, 'call', 'mine', '')).toEqual([])
    expect((await it.run(['list', 'mine', 'tools', '--trust'])).code).toBe(0)
    expect(words(await proposed(it, 'call', 'mine', 'f'))).toEqual(['fail'])
  })
})

/** Why the completions of a shell are not tried. */
const missing = (shell: string): string =>
  spawnSync(shell, ['--version']).status === 0 ? '' : ` (skipped: ${shell} is not installed)`

/** What a shell makes of each of the lines when Tab is pressed behind it, in one shell after the other. */
type Asking = (it: Awaited<ReturnType<typeof place>>, lines: readonly string[]) => Promise<readonly string[]>

/** Between what is said of one line and of the next. */
const mark = '<<<>>>'
const quoted = (lines: readonly string[]): string => lines.map(line => `'${line}'`).join(' ')

const shells: Readonly<Record<string, Asking>> = {
  bash: async ({ folder, env }, lines) => {
    const script = `
      eval "$(vivarium completions bash)"
      for COMP_LINE in ${quoted(lines)}; do
        COMP_POINT=\${#COMP_LINE}
        # As readline cuts it.
        mapfile -t COMP_WORDS < <(grep -oE '[:=]+|[^[:space:]:=]+' <<< "$COMP_LINE")
        [[ "$COMP_LINE" == *[[:space:]:=] ]] && COMP_WORDS+=("")
        COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
        _vivarium
        printf '%s\\n' "\${COMPREPLY[@]}" '${mark}'
      done`
    return (await run('bash', ['--norc', '-c', script], { cwd: folder, env })).stdout.split(mark)
  },
  fish: async ({ folder, env }, lines) => {
    const script = `vivarium completions fish | source; for line in ${quoted(lines)}; complete -C $line; echo '${mark}'; end`
    return (await run('fish', ['--no-config', '-c', script], { cwd: folder, env })).stdout.split(mark)
  },
  zsh: async (it, lines) => {
    // A terminal of its own, where keys are pressed; another key prints what stands in the line then.
    const driver = it.write(
      'drive.zsh',
      `zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "PS1= RPS1= PS2=; stty -echo; cd ${it.folder}; autoload -Uz compinit; compinit -u -d ${it.folder}/dump"
zpty -w inner 'eval "$(vivarium completions zsh)"'
zpty -w inner 'show() { print -r -- "<<<$LBUFFER>>>"; zle kill-whole-line }; zle -N show; bindkey "^X" show; print rea''dy'
zpty -r inner said '*ready*'
for line in ${quoted(lines)}; do
  zpty -w -n inner "$line"$'\\t\\x18'
  zpty -r inner said '*<<<*>>>*'
  print -r -- "$said"
  print -r -- '${mark}'
done
zpty -d inner
`,
    )
    const { stdout } = await run('zsh', ['-f', driver], { cwd: it.folder, env: it.env, timeout: 60_000 })
    return stdout.split(`\n${mark}`).map(said => /<<<(.*)>>>/.exec(said)?.[1] ?? '')
  },
}

describe.each(Object.entries(shells))('%s', (shell, ask) => {
  const without = missing(shell)
  test.skipIf(without !== '')(
    `proposes verbs, servers, files, tools and resources${without}`,
    async () => {
      const it = await place()
      expect((await it.run(['list', 'server.ts'])).code).toBe(0)
      const lines = [
        'vivarium ins',
        'vivarium list cursor:',
        'vivarium list serv',
        'vivarium call server.ts ad',
        'vivarium read server.ts note:',
      ]
      const found = await ask(it, lines)
      const ends = ['inspect', 'both', 'server\\.ts', 'add', '//today']
      ends.forEach((end, at) => {
        expect(found[at]).toMatch(new RegExp(`${end}\\b`))
      })
    },
    90_000,
  )
})

test('another shell is told which there are', async () => {
  const it = await trial({})
  expect((await it.run(['completions', 'csh'])).err).toContain('Name one of bash, zsh, fish')
})
