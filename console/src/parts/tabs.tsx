/** One of a few views of the same thing. The choice is a group of buttons of which one is pressed. */
import type { ReactNode } from 'react'

export interface TabsProps<Name extends string> {
  readonly label: string
  readonly names: readonly Name[]
  readonly chosen: Name
  readonly choose: (name: Name) => void
  /** Counts behind names. */
  readonly counts?: Readonly<Partial<Record<Name, number>>>
}

export function Tabs<Name extends string>({ label, names, chosen, choose, counts }: TabsProps<Name>): ReactNode {
  return (
    <fieldset aria-label={label} className="inline-flex max-w-full flex-wrap gap-0.5 rounded-lg bg-hover p-0.5">
      {names.map(name => (
        <button
          key={name}
          type="button"
          aria-pressed={name === chosen}
          onClick={() => choose(name)}
          className={`min-h-7 rounded-md px-2 ${name === chosen ? 'bg-raised font-semibold text-ink shadow-xs' : 'text-muted hover:text-ink'}`}
        >
          {name}
          {counts?.[name] !== undefined && (
            <span className="ml-1 font-normal tabular-nums">{counts[name].toLocaleString('en')}</span>
          )}
        </button>
      ))}
    </fieldset>
  )
}
