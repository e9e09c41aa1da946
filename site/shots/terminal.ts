/** Runs a command as if in a terminal, and draws what it printed as a page. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../../scripts/lib/files.ts'
import { html, type Markup, raw } from '../html.ts'
import { screenOf } from './ansi.ts'
import type { Command, TerminalShot } from './table.ts'

/** A command that has not ended by then hangs. */
const deadlineMs = 120_000

/** What our streams say of themselves, without a terminal behind them. */
const asTerminal = (columns: number): string =>
  `data:text/javascript,for(const s of [process.stdout,process.stderr]){s.isTTY=true;s.columns=${columns};s.rows=50}`

/** The page of a terminal in which the commands have run. `data` is a folder where programs may write. */
export async function terminalPage(shot: TerminalShot, data: string): Promise<string> {
  const parts: Markup[] = []
  for (const command of shot.commands) {
    const written = await run(command, shot.columns, data)
    const lines = screenOf(written)
    const text = written.replace(/\x1b\[[\d;?]*[A-Za-z]/g, '').split('\n')
    const first =
      command.from === undefined ? 0 : text.findIndex(line => command.from?.test((line.split('\r').at(-1) ?? '').trimEnd()))
    if (first < 0) throw new Error(`${shot.name}: no line fits ${command.from}`)
    const shown = trimmed(lines.slice(first))
    const cut = command.most !== undefined && shown.length > command.most
    const prompt = html`<div><span class="prompt">$</span> <span class="typed">vivarium ${command.words.join(' ')}</span></div>`
    parts.push(
      html`${first === 0 && prompt}${shown.slice(0, command.most).map(line => html`<div>${line}</div>`)}${cut && html`<div class="dim">…</div>`}`,
    )
  }
  return html`<!doctype html><meta charset="utf-8"><style>${raw(STYLE)}</style><main style="width:${shot.columns}ch"><i></i><i></i><i></i>${parts}</main>`
    .text
}

function trimmed(lines: readonly Markup[]): readonly Markup[] {
  const last = lines.findLastIndex(({ text }) => text.trim() !== '')
  return lines.slice(0, last + 1)
}

async function run({ words, typed = [] }: Command, columns: number, data: string): Promise<string> {
  const args = [
    '--disable-warning=ExperimentalWarning',
    '--import',
    asTerminal(columns),
    join(root, 'bin', 'vivarium.mjs'),
    ...words,
  ]
  const env = { PATH: process.env['PATH'], HOME: data, XDG_CONFIG_HOME: data, XDG_CACHE_HOME: data, TERM: 'xterm-256color' }
  const stores = { VIVARIUM_DATA: join(data, 'vivarium'), NOTES_STORE: `sqlite:${join(data, 'notes.db')}` }
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...env, ...stores },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: deadlineMs,
  })
  let written = ''
  const left = [...typed]
  let seen = 0
  const read = (chunk: Buffer) => {
    written += chunk.toString('utf8')
    const next = left[0]
    const at = next === undefined ? -1 : written.indexOf(next.after, seen)
    if (next === undefined || at < 0) return
    left.shift()
    seen = at + next.after.length
    child.stdin.write(`${next.line}\n`)
  }
  child.stdout.on('data', read)
  child.stderr.on('data', read)
  if (typed.length === 0) child.stdin.end()
  const { code, signal } = await new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(resolve =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  )
  if (code !== 0) throw new Error(`vivarium ${words.join(' ')} ended with ${signal ?? code}:\n${written.slice(-2000)}`)
  return written.replaceAll(data, '~').replaceAll(root, '…')
}

const STYLE = `
html { background: transparent }
main { font: 14px/1.5 "DejaVu Sans Mono", "SF Mono", Menlo, Consolas, monospace; background: #17201b; color: #dfe7e1; padding: 40px 24px 22px; border-radius: 12px; white-space: pre-wrap; overflow-wrap: anywhere; position: relative; display: inline-block; margin: 0 }
body { margin: 0 }
div { min-height: 1.5em }
i { position: absolute; top: 15px; left: 20px; width: 11px; height: 11px; border-radius: 50%; background: #3b4a41 }
i + i { left: 38px } i + i + i { left: 56px }
.prompt { color: #8fd0a9 } .typed { color: #fff; font-weight: 600 }
.bold { font-weight: 700; color: #fff } .dim { color: #93a399 } .italic { font-style: italic } .underline { text-decoration: underline }
.red { color: #f0958a } .green { color: #8fd0a9 } .yellow { color: #e5c877 } .blue { color: #8fb8e8 } .magenta { color: #d3a6dd } .cyan { color: #86cfd4 }
`
