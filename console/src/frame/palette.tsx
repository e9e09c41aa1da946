/** Goes anywhere by typing: screens, servers, approvals, commands of the page. Opened by Ctrl or ⌘ K. It selects; it never acts on the process. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, type ReactNode, useId, useMemo, useState } from 'react'
import { approvalList, serverList } from '../api/lists.ts'
import { Text } from '../parts/text.tsx'
import { useConsole, useResource } from './context.ts'
import { Dialog } from './dialog.tsx'
import { type Choice, useHostChoices } from './host-choices.ts'
import { setPreferences } from './preferences.ts'
import { screenEntries } from './screens.ts'

/** More would not be read. */
const most = 50

export function Palette({ close }: { readonly close: () => void }): ReactNode {
  const list = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const choices = useChoices()
  const ofHost = useHostChoices(text)
  const found = useMemo(() => find([...choices, ...ofHost], text).slice(0, most), [choices, ofHost, text])
  const index = Math.min(at, found.length - 1)
  const choose = (choice: Choice | undefined) => {
    if (choice === undefined) return
    close()
    choice.run()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter') return choose(found[index])
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    setAt((index + step + found.length) % Math.max(1, found.length))
  }
  return (
    <Dialog label="Go to" close={close}>
      <input
        role="combobox"
        aria-label="Go to"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={found.length > 0 ? `${list}-${index}` : undefined}
        placeholder="Screen, server, approval, conversation or id"
        autoComplete="off"
        className="min-h-12 w-full rounded-b-none border-0 border-b border-line px-4 text-[1.07rem]"
        value={text}
        onChange={event => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <div id={list} role="listbox" aria-label="Places" className="max-h-80 overflow-auto p-1.5">
        {found.map((choice, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input, which keeps the focus
          <div
            key={`${choice.kind} ${choice.title}`}
            id={`${list}-${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === index}
            className={`flex cursor-pointer gap-3 rounded-md px-3 py-1.5 ${place === index ? 'bg-accent-soft' : 'hover:bg-hover'}`}
            onClick={() => choose(choice)}
          >
            <span className="w-20 shrink-0 text-muted">{choice.kind}</span>
            <span className="min-w-0 truncate">
              <Text most={200}>{choice.title}</Text>
            </span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="px-4 py-3 text-muted">Nothing has that name.</p>}
    </Dialog>
  )
}

function useChoices(): readonly Choice[] {
  const { self } = useConsole()
  const navigate = useNavigate()
  const servers = useQuery({ ...serverList, enabled: useResource('/servers') }).data
  const approvals = useQuery({ ...approvalList, enabled: useResource('/approvals') }).data
  return useMemo(() => {
    const go = (to: string) => () => void navigate({ to })
    const serverScreen = self.screens.includes('overview') ? 'overview' : 'playground'
    const themes = ['system', 'light', 'dark'] as const
    return [
      ...screenEntries
        .filter(({ screen }) => self.screens.includes(screen))
        .map(({ title, path }) => ({ kind: 'screen', title, run: go(path) })),
      ...(servers ?? []).map(({ name }) => ({
        kind: 'server',
        title: name,
        run: go(`/${serverScreen}?server=${encodeURIComponent(name)}`),
      })),
      ...(approvals ?? []).map(({ id, server, tool, text }) => ({
        kind: 'approval',
        title: `${tool ?? server}: ${text}`,
        run: go(`/approvals/${encodeURIComponent(id)}`),
      })),
      ...themes.map(theme => ({ kind: 'theme', title: `${theme} theme`, run: () => setPreferences({ theme }) })),
      { kind: 'keys', title: 'single letters on', run: () => setPreferences({ letters: true }) },
      { kind: 'keys', title: 'single letters off', run: () => setPreferences({ letters: false }) },
    ]
  }, [self, servers, approvals, navigate])
}

/** Choices whose words contain every typed word, those that begin with it first. */
function find(choices: readonly Choice[], text: string): readonly Choice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const rank = ({ kind, title }: Choice) => {
    const whole = `${kind} ${title}`.toLowerCase()
    if (!words.every(word => whole.includes(word))) return Number.POSITIVE_INFINITY
    return title.toLowerCase().startsWith(words[0] ?? '') ? 0 : 1
  }
  return choices
    .map(choice => ({ choice, rank: rank(choice) }))
    .filter(({ rank: each }) => Number.isFinite(each))
    .sort((a, b) => a.rank - b.rank)
    .map(({ choice }) => choice)
}
