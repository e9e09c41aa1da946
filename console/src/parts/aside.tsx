/** The pane beside a list: one thing of it, with a way to close it. On narrow pages it stands in place of the list. */
import type { ReactNode } from 'react'
import { Button } from './button.tsx'

export interface AsideProps {
  readonly label: string
  readonly title: ReactNode
  /** Buttons before the one that closes. */
  readonly actions?: ReactNode
  readonly close: () => void
  readonly children: ReactNode
}

export function Aside({ label, title, actions, close, children }: AsideProps): ReactNode {
  return (
    <aside
      aria-label={label}
      className="min-h-0 space-y-3 overflow-auto border-line bg-raised p-4 max-lg:flex-1 lg:w-[min(34rem,45vw)] lg:shrink-0 lg:border-l"
    >
      <div className="flex items-start gap-2">
        <h2 className="min-w-0 content-center self-stretch font-semibold break-words">{title}</h2>
        <span className="ml-auto flex shrink-0 gap-2">
          {actions}
          <Button look="quiet" onClick={close}>
            Close
          </Button>
        </span>
      </div>
      {children}
    </aside>
  )
}
