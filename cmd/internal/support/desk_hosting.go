package support

var hosting = desk{
	name: "nimbushost",
	intro: "You are the first-line support of Nimbushost, which rents virtual servers and managed databases to small firms. " +
		"Be exact and brief, give commands in full, and say so when a step interrupts a service. " +
		"Never ask for a password or a private key; if a customer sends one, ask them to replace it. " +
		"Escalate to the engineer on duty when data may be lost, and give the ticket's number. The handbook follows.",
	places: []string{"the Lisbon site", "the Oslo site", "the Vienna site", "the second rack in Oslo"},
	topics: []topic{
		{
			title: "Disks and growing them",
			handbook: "Every server has one root disk of the plan's size and up to eight volumes. A volume can grow while it is attached, never shrink; after growing it in the panel the file system has to be grown with resize2fs for ext4 or xfs_growfs for XFS. " +
				"Growing the root disk needs a restart of about one minute. Disks are replicated twice within a site; this is no backup. A disk that is more than 95 percent full for an hour raises a notice to the account's technical contact.",
			asks: []string{
				"Our database server {ref} at {place} has only {n} percent of disk space left. Can I enlarge the disk without downtime?",
				"I enlarged the volume in the panel by {n} GB, but df still shows the old size. What am I missing?",
			},
			answer: "A volume can grow while it is attached, so there is no downtime for it: enlarge it in the panel and then run resize2fs /dev/vdb for ext4, or xfs_growfs with the mount point for XFS. Until that second step df shows the old size. Only the root disk needs a restart, of about one minute, and no disk can be made smaller afterwards.",
			follow: "It is the root disk, as I see now. Can the restart be planned for the night of {day}?",
			reply:  "Yes: under Server, Maintenance choose {day} and an hour, and tick the larger plan. The restart takes about one minute, and the technical contact gets a message before and after it.",
		},
		{
			title: "Backups and restoring",
			handbook: "Snapshots are made every night between one and four and kept for seven days, or for 30 days with the archive option. They are taken from a frozen file system where the guest agent runs; without the agent they are only crash-consistent. " +
				"A restore goes to a new volume, never over the old one, and takes about one minute for each 10 GB. Managed databases have in addition a log of changes, with which any second of the last three days can be restored.",
			asks: []string{
				"Somebody deleted a table on {day} at about {n} past nine. Can we get it back without losing what came after?",
				"How do I test whether the backups of server {ref} can really be restored?",
			},
			answer: "For a managed database you can restore any second of the last three days to a second instance and copy the table over, so nothing written since is lost. For servers, last night's snapshot is restored to a new volume, never over the old one, at about a minute for each 10 GB. Attach that volume to a spare server, check the data, and delete it; this is also the test that we advise once a quarter.",
			follow: "Are these snapshots consistent for PostgreSQL, or do we have to stop it first?",
			reply:  "With the guest agent running the file system is frozen for the moment of the snapshot, which PostgreSQL recovers from as after a power cut. If the agent isn't installed the snapshot is only crash-consistent; you see which it is in the snapshot's details.",
		},
		{
			title: "Firewall and addresses",
			handbook: "Each server has one IPv4 and a /64 of IPv6. The site firewall drops all inbound traffic but ports 22, 80 and 443 until rules are made; rules belong to groups, and a server may be in five groups. Outbound port 25 is closed for accounts younger than 30 days. " +
				"Reverse DNS is set in the panel and active within ten minutes. An address moves between servers of one site in seconds, between sites not at all.",
			asks: []string{
				"I opened port 8443 on the server with ufw, but from outside it stays closed. Server {ref}, {place}.",
				"Our mails from the new server don't leave. Is outbound port 25 blocked?",
			},
			answer: "Besides the server's own rules there is the site firewall, which lets in only ports 22, 80 and 443 until you add a rule: under Network, Groups, add TCP 8443 to the group of this server. Outbound port 25 is closed for the first 30 days of an account; use port 587 with an authenticated relay until then. A rule is active within a few seconds.",
			follow: "Can I move the address to a server at another site, so that customers needn't change anything?",
			reply:  "Not between sites: addresses belong to {place}. Put a DNS name with a short lifetime in front a day ahead, or let the old server forward the connections for some time.",
		},
		{
			title: "Slow servers",
			handbook: "Shared plans have a fair share of a core and may burst; the steal column of top shows what others took. Steal above ten percent for 15 minutes is a fault of ours, and a migration to a quieter host is free and takes less than two seconds of pause. " +
				"Volumes deliver 3,000 operations a second, or 300 for each 10 GB if that is more. Before a ticket about slowness the customer should send the output of vmstat 5 12 and of iostat -x 5 12, taken while it is slow.",
			asks: []string{
				"Since {day} our shop answers in {n} seconds in place of one. CPU usage is low. What should we look at?",
				"top shows a steal value of {n} percent on server {ref}. Is that normal for your shared plan?",
			},
			answer: "Please run vmstat 5 12 and iostat -x 5 12 while it is slow. If the steal column stays above ten percent for a quarter of an hour, it is our fault, and I move the server to a quieter host with a pause of under two seconds. If steal is low and iostat shows the volume at 3,000 operations a second, the disk is the limit: a larger volume has a higher one, 300 for each 10 GB.",
			follow: "vmstat says st 1, wa 46. So it is the disk?",
			reply:  "Yes, the processor waits for the disk nearly half of the time and nothing is stolen. Look with iotop for the process that reads most; with a database it is often a missing index or too small a cache. If the load is as it should be, a larger volume raises the limit at once.",
		},
		{
			title: "Certificates",
			handbook: "The load balancer gets certificates by itself for every name that points to it, 30 days before the old one ends, and tries once a day. It needs port 80 open for the check, or a DNS token for wildcard names. On servers of their own, customers use any ACME client. " +
				"An expired certificate at the balancer is treated as an outage of ours unless the name pointed elsewhere at the time of renewal.",
			asks: []string{
				"Browsers say that our certificate ends in {n} days. Didn't you say that it is renewed automatically?",
				"How do we get a wildcard certificate on the load balancer for server {ref}?",
			},
			answer: "The balancer renews 30 days before the end and tries daily, so a certificate with fewer days left means that the check fails: most often the name has an AAAA record that points elsewhere, or port 80 is closed. For wildcard names the check goes through DNS, and you store a token of your DNS provider under Balancer, Names. I can start an attempt by hand once the record is right.",
		},
		{
			title: "Invoices and plans",
			handbook: "Servers are charged by the hour up to the plan's monthly price; a stopped server keeps its disk and address and costs 20 percent. Plans change up at any time and down once a month. Traffic up to 5 TB a month is included, each further TB costs 2.00. " +
				"Invoices come on the third, are payable in 14 days, and show each server with its hours. Credits for outages are a tenth of the monthly price for each hour begun, without being asked.",
			asks: []string{
				"The invoice of this month is {n} euros higher than the last one and I can't see why. Account {ref}.",
				"If we stop the test server each night, how much do we save?",
			},
			answer: "The invoice lists each server with its hours: the usual reasons are a server that ran in parallel for some days, or traffic above the included 5 TB, at 2.00 for each further TB. A stopped server keeps its disk and address and costs 20 percent of the hourly price, so stopping it for ten hours a night saves about a third. Deleting it and restoring a snapshot in the morning saves more.",
			follow: "There was an outage at {place} on {day}. Do we have to apply for the credit?",
			reply:  "No, credits come without being asked: a tenth of the monthly price for each hour begun, on the next invoice. It names the outage, so you can check that all of your servers at {place} are in it.",
		},
	},
}
