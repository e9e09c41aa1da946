/** The keys of the page, and of the screen below. */
import type { ReactNode } from 'react'
import { Button } from '../parts/button.tsx'
import { useConsole } from './context.ts'
import { Dialog } from './dialog.tsx'
import { setPreferences, usePreferences } from './preferences.ts'
import { screenEntries } from './screens.ts'

const common: readonly (readonly [keys: string, does: string])[] = [
  ['Ctrl K', 'go to a screen, a server or an approval'],
  ['/', 'filter'],
  ['j k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['Esc', 'close'],
  ['Space', 'hold a list that grows'],
  ['y o n', 'approvals: yes for longer, yes once, no'],
  ['p', 'audit: prove the chain'],
  ['p', 'inbox: try a dead event again'],
  ['r e v', 'playground: run, form or JSON, revisions'],
  ['t', 'traffic: the time axis'],
  ['.', 'traffic: edit the frame and send it again'],
  ['f', 'conformance: the next failure'],
  ['w u h', 'chat: steps of the turn, undo it, why'],
  ['d', 'state: difference to the parent'],
  ['← →', 'explain: along the causes'],
  ['?', 'these keys'],
]

export function KeyList({ close }: { readonly close: () => void }): ReactNode {
  const { letters } = usePreferences()
  const { self } = useConsole()
  const here = screenEntries.filter(({ screen }) => self.screens.includes(screen))
  const names = here.map(({ screen }) => `${screen}:`)
  // Keys of screens that this kind of process lacks would only be in the way.
  const known = common.filter(([, does]) => !/^\w+:/.test(does) || names.some(name => does.startsWith(name)))
  const rows = [...known, ...here.map(({ letter, title }) => [`g ${letter}`, title] as const)]
  return (
    <Dialog label="Keys" close={close}>
      <div className="p-5">
        <h2 className="mb-3 text-[1.14rem] font-semibold">Keys</h2>
        <dl className="grid grid-cols-[auto_1fr] gap-x-5 gap-y-1.5">
          {rows.map(([keys, does]) => (
            <div key={keys} className="contents">
              <dt>
                <kbd className="rounded border border-line bg-code px-1.5 font-mono">{keys}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <label className="mt-4 flex items-center gap-2">
          <input type="checkbox" checked={letters} onChange={event => setPreferences({ letters: event.target.checked })} />
          Single letters act
        </label>
        <div className="mt-4 text-right">
          <Button onClick={close}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}
