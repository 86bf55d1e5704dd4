-- The tables stay as they are. The number alone is for programs that do not know it: the
-- store has a session in another workspace, whose commands they would run on their own
-- machine. It is given to a store together with the first such session.
SELECT 4;
